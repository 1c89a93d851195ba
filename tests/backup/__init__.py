"""A backup under load, restored elsewhere, asked many questions: the long form of tests/integration/backup."""
