#!/bin/sh
# Makes Temporal's two databases in PostgreSQL, or brings them to this version's schema. SQL_* say where. Safe to repeat.
set -eu

schema() { # DATABASE NAME
	export SQL_DATABASE="$1"
	temporal-sql-tool create-database
	temporal-sql-tool setup-schema --version 0.0
	temporal-sql-tool update-schema --schema-name "postgresql/v12/$2"
}

schema temporal temporal
schema temporal_visibility visibility
