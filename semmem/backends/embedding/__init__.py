"""Vectors of texts, from a model in this process: PyTorch, or ONNX Runtime with what was exported from PyTorch."""
