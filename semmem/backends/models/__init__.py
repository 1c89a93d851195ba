"""Language models and rerankers behind HTTP."""
