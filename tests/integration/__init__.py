"""With the processes, files and stores that semmem uses, without Envoy."""
