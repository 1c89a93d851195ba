BEGIN TRANSACTION;
CREATE TABLE accesses (
	user_id TEXT NOT NULL, 
	memory_id TEXT NOT NULL, 
	used INTEGER NOT NULL, 
	last_at DOUBLE NOT NULL, 
	PRIMARY KEY (user_id, memory_id)
);
INSERT INTO "accesses" VALUES('ada','mem_1',3,123.0);
CREATE TABLE answers (
	id TEXT NOT NULL, 
	turn_id TEXT NOT NULL, 
	answered_at DOUBLE NOT NULL, 
	PRIMARY KEY (id, turn_id)
);
CREATE TABLE api_call_users (
	"key" TEXT NOT NULL, 
	user_digest TEXT NOT NULL, 
	PRIMARY KEY ("key", user_digest)
);
CREATE TABLE api_calls (
	"key" TEXT NOT NULL, 
	request TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	lease_until DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	keep INTEGER NOT NULL, 
	status INTEGER, 
	answer BLOB, 
	counts TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
CREATE TABLE api_tokens (
	id TEXT NOT NULL, 
	role TEXT NOT NULL, 
	label TEXT NOT NULL, 
	user_digest TEXT NOT NULL, 
	token_hash TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE, 
	revoked_at DOUBLE, 
	PRIMARY KEY (id)
);
CREATE TABLE batches (
	id TEXT NOT NULL, 
	user_id TEXT DEFAULT '' NOT NULL, 
	project TEXT DEFAULT '' NOT NULL, 
	agent TEXT DEFAULT '' NOT NULL, 
	session TEXT DEFAULT '' NOT NULL, 
	trigger_word TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	claimable_at DOUBLE NOT NULL, 
	facts TEXT, 
	applied INTEGER DEFAULT '0' NOT NULL, 
	status TEXT, 
	finished_at DOUBLE, 
	PRIMARY KEY (id)
);
CREATE TABLE conversation_messages (
	turn_id TEXT NOT NULL, 
	step TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	conversation_id TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	place TEXT NOT NULL, 
	turn_at DOUBLE NOT NULL, 
	at DOUBLE NOT NULL, 
	role TEXT NOT NULL, 
	content TEXT DEFAULT '' NOT NULL, 
	cut INTEGER DEFAULT '0' NOT NULL, 
	answers TEXT DEFAULT '' NOT NULL, 
	calls TEXT DEFAULT '' NOT NULL, 
	model_asked TEXT DEFAULT '' NOT NULL, 
	model TEXT DEFAULT '' NOT NULL, 
	backend TEXT DEFAULT '' NOT NULL, 
	tokens_in BIGINT, 
	tokens_out BIGINT, 
	answer_id TEXT DEFAULT '' NOT NULL, 
	finish_reason TEXT DEFAULT '' NOT NULL, 
	"after" TEXT DEFAULT '' NOT NULL, 
	whole INTEGER DEFAULT '0' NOT NULL, 
	vector BLOB, 
	vector_of TEXT DEFAULT '' NOT NULL, 
	shown TEXT DEFAULT '' NOT NULL, 
	withheld INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (turn_id, step, number)
);
INSERT INTO "conversation_messages" VALUES('t1','',0,'conv_7755591c9195ec3e896a7204228a0c49','ada','00000000100.000000 t1 00000000000.000000 1000000',100.0,100.0,'user','I like tea',0,'','','gpt-asked','','',NULL,NULL,'','','',0,NULL,'','',0);
INSERT INTO "conversation_messages" VALUES('t1','',999,'conv_7755591c9195ec3e896a7204228a0c49','ada','00000000100.000000 t1 00000000000.000000 1000999',100.0,101.0,'assistant','Noted.',0,'','','gpt-asked','','',10,3,'','','',0,NULL,'','',0);
INSERT INTO "conversation_messages" VALUES('t2','',0,'conv_7755591c9195ec3e896a7204228a0c49','ada','00000000150.000000 t2 00000000000.000000 1000000',150.0,150.0,'user','My name is Ada\0000',0,'','','gpt-asked','','',NULL,NULL,'','','',0,NULL,'','',0);
INSERT INTO "conversation_messages" VALUES('t2','',999,'conv_7755591c9195ec3e896a7204228a0c49','ada','00000000150.000000 t2 00000000000.000000 1000999',150.0,151.0,'assistant','Hello Ada',0,'','','gpt-asked','','',10,3,'','','',0,NULL,'','',0);
CREATE TABLE conversations (
	id TEXT NOT NULL, 
	user_id TEXT DEFAULT '' NOT NULL, 
	project TEXT DEFAULT '' NOT NULL, 
	agent TEXT DEFAULT '' NOT NULL, 
	session TEXT DEFAULT '' NOT NULL, 
	title TEXT DEFAULT '' NOT NULL, 
	titled_at DOUBLE, 
	tags TEXT DEFAULT '' NOT NULL, 
	messages INTEGER DEFAULT '0' NOT NULL, 
	tokens_in BIGINT DEFAULT '0' NOT NULL, 
	tokens_out BIGINT DEFAULT '0' NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	progress TEXT DEFAULT '' NOT NULL, 
	last_answer TEXT DEFAULT '' NOT NULL, 
	withheld_from TEXT DEFAULT '' NOT NULL, 
	withheld_until DOUBLE DEFAULT '0' NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "conversations" VALUES('conv_7755591c9195ec3e896a7204228a0c49','ada','','','s1','I like tea',NULL,'',4,20,6,100.0,151.0,'','','',0.0);
CREATE TABLE dropped (
	user_id TEXT NOT NULL, 
	memory_id TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	times INTEGER NOT NULL, 
	last_at DOUBLE NOT NULL, 
	PRIMARY KEY (user_id, memory_id, reason)
);
CREATE TABLE erasures (
	batch_id TEXT NOT NULL, 
	memory_id TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	PRIMARY KEY (batch_id, memory_id)
);
CREATE TABLE forgotten (
	user_digest TEXT NOT NULL, 
	project_digest TEXT NOT NULL, 
	agent_digest TEXT NOT NULL, 
	session_digest TEXT NOT NULL, 
	forgotten_at DOUBLE NOT NULL, 
	hidden_at DOUBLE DEFAULT '0' NOT NULL, 
	PRIMARY KEY (user_digest, project_digest, agent_digest, session_digest)
);
INSERT INTO "forgotten" VALUES('85262adf74518bbb70c7cb94cd6159d91669e5a81edf1efebd543eadbda9fa2b','','','',170.0,0.0);
CREATE TABLE forgotten_conversations (
	id TEXT NOT NULL, 
	forgotten_at DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE forgotten_memories (
	user_digest TEXT NOT NULL, 
	memory_digest TEXT NOT NULL, 
	turn_digest TEXT NOT NULL, 
	forgotten_at DOUBLE NOT NULL, 
	PRIMARY KEY (user_digest, memory_digest, turn_digest)
);
CREATE TABLE journal_revision (
	version_num VARCHAR(32) NOT NULL, 
	PRIMARY KEY (version_num)
);
INSERT INTO "journal_revision" VALUES('0015');
CREATE TABLE journal_schema (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "journal_schema" VALUES(2);
CREATE TABLE memory_switches (
	"key" TEXT NOT NULL, 
	group_name TEXT NOT NULL, 
	reading INTEGER, 
	storing INTEGER, 
	number INTEGER NOT NULL, 
	changed_at DOUBLE NOT NULL, 
	PRIMARY KEY ("key")
);
CREATE TABLE obeyed (
	erasure_id TEXT NOT NULL, 
	replica_id TEXT NOT NULL, 
	forgotten_at DOUBLE NOT NULL, 
	PRIMARY KEY (erasure_id, replica_id)
);
CREATE TABLE pending_erasures (
	id TEXT NOT NULL, 
	user_id TEXT DEFAULT '' NOT NULL, 
	project TEXT DEFAULT '' NOT NULL, 
	agent TEXT DEFAULT '' NOT NULL, 
	session TEXT DEFAULT '' NOT NULL, 
	narrowed TEXT NOT NULL, 
	types TEXT NOT NULL, 
	memory_id TEXT, 
	forgotten_at DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE provisional (
	turn_id TEXT NOT NULL, 
	memory_id TEXT NOT NULL, 
	user_id TEXT DEFAULT '' NOT NULL, 
	state INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (turn_id, memory_id)
);
CREATE TABLE reindex_writers (
	replica_id TEXT NOT NULL, 
	target TEXT NOT NULL, 
	PRIMARY KEY (replica_id)
);
CREATE TABLE reindexes (
	store TEXT NOT NULL, 
	source TEXT NOT NULL, 
	target TEXT NOT NULL, 
	signature TEXT NOT NULL, 
	state TEXT NOT NULL, 
	position TEXT NOT NULL, 
	users INTEGER NOT NULL, 
	users_done INTEGER NOT NULL, 
	memories_done INTEGER NOT NULL, 
	embedded INTEGER NOT NULL, 
	changed_at DOUBLE NOT NULL, 
	claimed_by TEXT, 
	claimed_until DOUBLE DEFAULT '0' NOT NULL, 
	PRIMARY KEY (store)
);
CREATE TABLE replicas (
	id TEXT NOT NULL, 
	seen_at DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE resting (
	batch_id TEXT NOT NULL, 
	until DOUBLE NOT NULL, 
	held_until DOUBLE, 
	PRIMARY KEY (batch_id)
);
CREATE TABLE said_messages (
	id TEXT NOT NULL, 
	ordinal INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	PRIMARY KEY (id, ordinal)
);
CREATE TABLE session_drifts (
	user_id TEXT NOT NULL, 
	session TEXT NOT NULL, 
	drifted_at DOUBLE NOT NULL, 
	PRIMARY KEY (user_id, session)
);
CREATE TABLE session_ends (
	user_id TEXT NOT NULL, 
	session TEXT NOT NULL, 
	ended_at DOUBLE NOT NULL, 
	PRIMARY KEY (user_id, session)
);
CREATE TABLE session_pasts (
	user_id TEXT NOT NULL, 
	session TEXT NOT NULL, 
	forgotten_at DOUBLE NOT NULL, 
	PRIMARY KEY (user_id, session)
);
CREATE TABLE session_states (
	user_id TEXT NOT NULL, 
	session TEXT NOT NULL, 
	turns INTEGER NOT NULL, 
	replaced INTEGER NOT NULL, 
	digest TEXT NOT NULL, 
	made_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	made_by TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (user_id, session, turns)
);
CREATE TABLE turns (
	id TEXT NOT NULL, 
	user_id TEXT DEFAULT '' NOT NULL, 
	project TEXT DEFAULT '' NOT NULL, 
	agent TEXT DEFAULT '' NOT NULL, 
	session TEXT DEFAULT '' NOT NULL, 
	session_key TEXT, 
	ordinal INTEGER DEFAULT '0' NOT NULL, 
	opened_at DOUBLE, 
	seen_at DOUBLE, 
	request_id TEXT DEFAULT '' NOT NULL, 
	user_text TEXT DEFAULT '' NOT NULL, 
	closing INTEGER DEFAULT '0' NOT NULL, 
	closed_at DOUBLE, 
	answer TEXT, 
	finish_reason TEXT, 
	batch_id TEXT, 
	done_at DOUBLE, 
	model TEXT DEFAULT '' NOT NULL, 
	trace TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "turns" VALUES('t1','ada','','','s1',NULL,0,100.0,100.0,'','I like tea',2,101.0,'Noted.','stop',NULL,NULL,'gpt-asked','');
INSERT INTO "turns" VALUES('t2','ada','','','s1',NULL,0,150.0,150.0,'','My name is Ada\0000',2,151.0,'Noted.','stop',NULL,NULL,'gpt-asked','');
INSERT INTO "turns" VALUES('lonely','','','','',NULL,0,NULL,NULL,'','',2,101.0,'Noted.','stop',NULL,NULL,'','');
INSERT INTO "turns" VALUES('t3','bob','','','s2',NULL,0,160.0,160.0,'','I keep bees',0,NULL,NULL,NULL,NULL,NULL,'','');
CREATE TABLE usage_days (
	began_at BIGINT NOT NULL, 
	user_name TEXT NOT NULL, 
	project TEXT NOT NULL, 
	endpoint TEXT NOT NULL, 
	model_asked TEXT NOT NULL, 
	model TEXT NOT NULL, 
	provider TEXT NOT NULL, 
	streamed INTEGER NOT NULL, 
	requests BIGINT NOT NULL, 
	errors BIGINT NOT NULL, 
	messages BIGINT NOT NULL, 
	tool_calls BIGINT NOT NULL, 
	tokens_in BIGINT NOT NULL, 
	tokens_out BIGINT NOT NULL, 
	estimated BIGINT NOT NULL, 
	duration_ms BIGINT NOT NULL, 
	PRIMARY KEY (began_at, user_name, project, endpoint, model_asked, model, provider, streamed)
);
CREATE TABLE usage_hours (
	began_at BIGINT NOT NULL, 
	user_name TEXT NOT NULL, 
	project TEXT NOT NULL, 
	endpoint TEXT NOT NULL, 
	model_asked TEXT NOT NULL, 
	model TEXT NOT NULL, 
	provider TEXT NOT NULL, 
	streamed INTEGER NOT NULL, 
	requests BIGINT NOT NULL, 
	errors BIGINT NOT NULL, 
	messages BIGINT NOT NULL, 
	tool_calls BIGINT NOT NULL, 
	tokens_in BIGINT NOT NULL, 
	tokens_out BIGINT NOT NULL, 
	estimated BIGINT NOT NULL, 
	duration_ms BIGINT NOT NULL, 
	PRIMARY KEY (began_at, user_name, project, endpoint, model_asked, model, provider, streamed)
);
CREATE TABLE usage_key (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE usage_requests (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	user_name TEXT NOT NULL, 
	project TEXT NOT NULL, 
	endpoint TEXT NOT NULL, 
	model_asked TEXT NOT NULL, 
	model TEXT NOT NULL, 
	provider TEXT NOT NULL, 
	streamed INTEGER NOT NULL, 
	session TEXT NOT NULL, 
	tokens_in BIGINT NOT NULL, 
	tokens_out BIGINT NOT NULL, 
	estimated INTEGER NOT NULL, 
	duration_ms BIGINT NOT NULL, 
	ending TEXT NOT NULL, 
	tool_calls INTEGER NOT NULL, 
	messages INTEGER NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE usage_sessions (
	began_at BIGINT NOT NULL, 
	user_name TEXT NOT NULL, 
	session TEXT NOT NULL, 
	PRIMARY KEY (began_at, user_name, session)
);
CREATE TABLE users (
	user_id TEXT NOT NULL, 
	kept_at DOUBLE DEFAULT '0' NOT NULL, 
	PRIMARY KEY (user_id)
);
INSERT INTO "users" VALUES('ada',0.0);
CREATE TABLE versions (
	user_id TEXT NOT NULL, 
	memory_id TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	project TEXT DEFAULT '' NOT NULL, 
	agent TEXT DEFAULT '' NOT NULL, 
	session TEXT DEFAULT '' NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (user_id, memory_id, version)
);
CREATE TABLE votes (
	user_id TEXT NOT NULL, 
	memory_id TEXT NOT NULL, 
	up INTEGER NOT NULL, 
	down INTEGER NOT NULL, 
	last_at DOUBLE NOT NULL, 
	number BIGINT NOT NULL, 
	PRIMARY KEY (user_id, memory_id)
);
CREATE INDEX turns_done ON turns (done_at, closing) WHERE done_at IS NOT NULL;
CREATE INDEX turns_in_batch ON turns (batch_id) WHERE batch_id IS NOT NULL AND done_at IS NULL;
CREATE INDEX turns_waiting ON turns (user_id, session, opened_at, seen_at, closed_at) WHERE opened_at IS NOT NULL AND batch_id IS NULL AND done_at IS NULL;
CREATE INDEX turns_session ON turns (user_id, session, opened_at);
CREATE INDEX turns_seen ON turns (user_id, session_key, seen_at) WHERE session_key IS NOT NULL;
CREATE INDEX turns_oldest ON turns (opened_at) WHERE opened_at IS NOT NULL AND batch_id IS NULL AND done_at IS NULL;
CREATE INDEX turns_lonely ON turns (closed_at) WHERE opened_at IS NULL AND done_at IS NULL;
CREATE INDEX batches_finished ON batches (finished_at) WHERE status IS NOT NULL;
CREATE UNIQUE INDEX batches_live ON batches (user_id) WHERE status IS NULL;
CREATE INDEX batches_claimable ON batches (claimable_at) WHERE status IS NULL;
CREATE INDEX answers_turn ON answers (turn_id);
CREATE INDEX users_kept ON users (kept_at);
CREATE INDEX provisional_memory ON provisional (user_id, memory_id);
CREATE INDEX memory_switches_number ON memory_switches (number);
CREATE INDEX votes_number ON votes (number);
CREATE INDEX api_calls_expiry ON api_calls (expires_at);
CREATE INDEX api_call_users_user ON api_call_users (user_digest);
CREATE INDEX usage_requests_at ON usage_requests (at);
CREATE INDEX usage_requests_user ON usage_requests (user_name);
CREATE INDEX usage_hours_user ON usage_hours (user_name);
CREATE INDEX usage_days_user ON usage_days (user_name);
CREATE INDEX usage_sessions_user ON usage_sessions (user_name);
CREATE INDEX conversations_user ON conversations (user_id, updated_at, id);
CREATE INDEX conversations_empty ON conversations (updated_at) WHERE messages = 0;
CREATE INDEX conversations_session ON conversations (user_id, session);
CREATE INDEX conversation_messages_place ON conversation_messages (conversation_id, place);
CREATE INDEX conversation_messages_at ON conversation_messages (turn_at);
CREATE INDEX conversation_messages_vector ON conversation_messages (vector_of) WHERE role = 'user';
CREATE INDEX conversation_messages_answer ON conversation_messages (user_id, answer_id) WHERE answer_id != '';
CREATE INDEX conversation_messages_user ON conversation_messages (user_id, turn_at);
CREATE INDEX conversation_messages_shown ON conversation_messages (user_id) WHERE shown != '';
CREATE INDEX session_states_expiry ON session_states (expires_at);
CREATE INDEX said_messages_at ON said_messages (at);
COMMIT;
