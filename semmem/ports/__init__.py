"""What the core needs from the outside, as small protocols, and the errors that may come through them.

Those of the journal are cut by subject: recording (turns as they are said), learning (batches), memory records (what is
kept of memories, and who may change them), erasure, conversations, housekeeping. One object implements them all; each
part takes what it needs. What wraps a store or an embedder begins with a wrapper here, which passes everything on."""
