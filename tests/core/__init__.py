"""In process, without a model or a store of its own: what one runs at every save."""
