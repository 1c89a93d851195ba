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
INSERT INTO "answers" VALUES('resp-t1','t1',100.5);
INSERT INTO "answers" VALUES('resp-t2','t2',101.5);
INSERT INTO "answers" VALUES('resp-t3','t3',150.5);
INSERT INTO "answers" VALUES('resp-lonely','lonely',401.0);
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
INSERT INTO "batches" VALUES('batch_d88c153d0866403a9b2f2d24d6ef8932','ada','','','s1','idle',1,210.0,NULL,0,'done',201.0);
INSERT INTO "batches" VALUES('batch_55a7c1a67b5c40c5a0785731a7de3782','bob','p','','s2','idle',1,310.0,'[{"type": "semantic", "content": "User keeps bees", "turn_id": "t3", "importance": 0.5, "occurred_at": null, "key": null}]',0,NULL,NULL);
CREATE TABLE erasures (
	batch_id TEXT NOT NULL, 
	memory_id TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	PRIMARY KEY (batch_id, memory_id)
);
CREATE TABLE journal_schema (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "journal_schema" VALUES(2);
CREATE TABLE session_drifts (
	user_id TEXT NOT NULL, 
	session TEXT NOT NULL, 
	drifted_at DOUBLE NOT NULL, 
	PRIMARY KEY (user_id, session)
);
INSERT INTO "session_drifts" VALUES('ada','s9',399.0);
CREATE TABLE session_ends (
	user_id TEXT NOT NULL, 
	session TEXT NOT NULL, 
	ended_at DOUBLE NOT NULL, 
	PRIMARY KEY (user_id, session)
);
INSERT INTO "session_ends" VALUES('ada','s9',400.0);
CREATE TABLE session_pasts (
	user_id TEXT NOT NULL, 
	session TEXT NOT NULL, 
	forgotten_at DOUBLE NOT NULL, 
	PRIMARY KEY (user_id, session)
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
	PRIMARY KEY (id)
);
INSERT INTO "turns" VALUES('t1','ada','','','s1',NULL,1,100.0,100.0,'r-t1','I like tea',2,100.5,'Noted.','stop','batch_d88c153d0866403a9b2f2d24d6ef8932',201.0);
INSERT INTO "turns" VALUES('t2','ada','','','s1',NULL,1,101.0,101.0,'r-t2','I moved to Lisbon',2,101.5,'Nice.','stop','batch_d88c153d0866403a9b2f2d24d6ef8932',201.0);
INSERT INTO "turns" VALUES('t3','bob','p','','s2',NULL,1,150.0,150.0,'r-t3','I keep bees',2,150.5,'Lovely.','stop','batch_55a7c1a67b5c40c5a0785731a7de3782',NULL);
INSERT INTO "turns" VALUES('t4','bob','p','','s2',NULL,1,151.0,151.0,'r-t4','My name is Bob\0000',0,NULL,NULL,NULL,'batch_55a7c1a67b5c40c5a0785731a7de3782',NULL);
INSERT INTO "turns" VALUES('t5','ada','','','s1',NULL,1,400.0,400.0,'r-t5','I like milk',0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turns" VALUES('lonely','','','','',NULL,0,NULL,NULL,'','',2,401.0,'Who asked?','stop',NULL,NULL);
CREATE TABLE users (
	user_id TEXT NOT NULL, 
	kept_at DOUBLE DEFAULT '0' NOT NULL, 
	PRIMARY KEY (user_id)
);
INSERT INTO "users" VALUES('ada',0.0);
INSERT INTO "users" VALUES('bob',0.0);
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
INSERT INTO "versions" VALUES('ada','mem_1',1,'','','','{"id": "mem_1", "version": 1, "type": "semantic", "content": "User likes tea", "user": "ada", "project": null, "agent": null, "session": null, "source": {"role": "user", "session": "", "turn": "", "request_id": "", "time": 0.0}, "key": null, "metadata": {}, "importance": 0.5, "created_at": 0.0, "updated_at": 0.0, "occurred_at": null, "expires_at": null, "status": "active"}');
CREATE INDEX turns_done ON turns (done_at, closing) WHERE done_at IS NOT NULL;
CREATE INDEX turns_lonely ON turns (closed_at) WHERE opened_at IS NULL AND done_at IS NULL;
CREATE INDEX turns_waiting ON turns (user_id, session, opened_at, seen_at, closed_at) WHERE opened_at IS NOT NULL AND batch_id IS NULL AND done_at IS NULL;
CREATE INDEX turns_in_batch ON turns (batch_id) WHERE batch_id IS NOT NULL AND done_at IS NULL;
CREATE INDEX turns_oldest ON turns (opened_at) WHERE opened_at IS NOT NULL AND batch_id IS NULL AND done_at IS NULL;
CREATE INDEX turns_seen ON turns (user_id, session_key, seen_at) WHERE session_key IS NOT NULL;
CREATE INDEX turns_session ON turns (user_id, session, opened_at);
CREATE INDEX batches_claimable ON batches (claimable_at) WHERE status IS NULL;
CREATE UNIQUE INDEX batches_live ON batches (user_id) WHERE status IS NULL;
CREATE INDEX batches_finished ON batches (finished_at) WHERE status IS NOT NULL;
CREATE INDEX answers_turn ON answers (turn_id);
CREATE INDEX users_kept ON users (kept_at);
COMMIT;
