#!/usr/bin/env bash
# Installs packages of Debian that are not there yet: each PACKAGE, PACKAGE:COMMAND that it brings, or PACKAGE: without one.
set -euo pipefail
wanted=()
for each in "$@"; do
  package=${each%%:*} command=${each#*:}
  dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q '^install ok' && continue
  [ -n "$command" ] && command -v "$command" >/dev/null && continue
  wanted+=("$package")
done
[ ${#wanted[@]} -eq 0 ] && exit 0
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -y -q --no-install-recommends "${wanted[@]}"
