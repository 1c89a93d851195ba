"""The composition root: settings in, a running semmem out. The only room that knows every other."""
