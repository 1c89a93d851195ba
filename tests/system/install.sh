#!/usr/bin/env bash
# What the tests here need of Debian, if it is not there yet.
set -euo pipefail
wanted=()
command -v promtool >/dev/null || wanted+=(prometheus)
[ ${#wanted[@]} -eq 0 ] && exit 0
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -y -q --no-install-recommends "${wanted[@]}"
