"""Which releases of Envoy semmem works with."""
