"""One file for each revision. A revision says what was so when it was written, and is not changed afterwards."""
