"""Long sessions: the older part of a request's messages is replaced by the state of the conversation.

``cutting`` says where a list of messages may be parted, ``compressor`` what a request is given. Behind the requests
``making`` has a state made, by a model or by rules (``extractive``, which has how it reads, too).
"""
