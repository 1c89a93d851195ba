"""Users' memories in this process, ready to be ranked."""
