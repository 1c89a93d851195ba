"""The road shown: a real Envoy, semmem and a stand-in model on one machine, playing two conversations.

Nothing here is part of the sidecar and nothing in the sidecar knows of it. It runs semmem the way an operator does,
as a process with a configuration file, behind the very ``deploy/envoy.yaml`` that is shipped; only addresses are
replaced, and a stand-in for authentication is put where the operator's own belongs.
"""
