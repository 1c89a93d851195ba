"""What the core needs from the outside, as small protocols, and the errors that may come through them.

Those of the journal's database are named for who uses them: recording (turns as they are said), learning (batches),
writes (whoever changes memories), erasure, maintenance, and history, which is what others read of the same. One object
may implement them all; each part takes the one it needs. What wraps a store or an embedder begins with a wrapper here,
which passes everything on.
"""
