#!/usr/bin/env bash
# Bring one checkout to the state in which every make target works. A second run changes nothing.
# Usage: scripts/setup.sh [VENV]; PYTHON names the interpreter, else the first of 3.11 or newer.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-.venv}

fail() {
  echo "setup: $*" >&2
  exit 1
}

is_new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3.14 python3}; do
    if is_new_enough "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  fail "no Python 3.11 or newer found; name one with: make setup PYTHON=/path/to/python3"
}

make_venv() {
  is_new_enough "$venv/bin/python" && return
  local python
  python=$(find_python)
  echo "setup: making $venv with $python"
  "$python" -m venv --clear "$venv"
}

install_requirements() {
  local wanted have="$venv/.requirements"
  wanted=$(sha256sum <requirements/dev.txt)
  if [[ ! -f $have || $(<"$have") != "$wanted" ]]; then
    echo "setup: installing the locked requirements"
    "$venv/bin/pip" install -qq --disable-pip-version-check --require-hashes --no-deps \
      --requirement requirements/dev.txt
    echo "$wanted" >"$have"
  fi
  # The build back end is one of the locked requirements, so nothing else is fetched here.
  "$venv/bin/pip" install -qq --disable-pip-version-check --no-deps --no-build-isolation \
    --editable .
}

has_postgres() {
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}

# The tests start their own private servers, so the package must neither make a cluster nor start
# a service: policy-rc.d forbids the second, create_main_cluster the first.
install_postgres() {
  has_postgres && return
  may_install "PostgreSQL 15" postgresql-15
  mkdir -p /etc/postgresql-common
  if [[ ! -e /etc/postgresql-common/createcluster.conf ]]; then
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
  fi
  install_server postgresql-15
  has_postgres || fail "postgresql-15 is installed, yet has no initdb under /usr/lib/postgresql"
}

has_rabbitmq() {
  [[ -x /usr/lib/rabbitmq/bin/rabbitmq-server ]] && command -v epmd >/dev/null
}

install_rabbitmq() {
  has_rabbitmq && return
  may_install RabbitMQ rabbitmq-server
  install_server rabbitmq-server
  has_rabbitmq || fail "rabbitmq-server is installed, yet /usr/lib/rabbitmq/bin or epmd is missing"
}

may_install() {
  [[ $EUID -eq 0 ]] || fail "$1 is missing: apt-get install $2, as root"
  command -v apt-get >/dev/null || fail "$1 is missing and there is no apt-get"
  echo "setup: installing $1"
}

install_server() {
  local policy=/usr/sbin/policy-rc.d made_policy=
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    made_policy=yes
  fi
  export DEBIAN_FRONTEND=noninteractive
  local status=0
  apt_install "$1" || status=$?
  [[ -z $made_policy ]] || rm -f "$policy"
  [[ $status -eq 0 ]] || fail "apt-get could not install $1"
}

has_node() {
  command -v node >/dev/null && command -v npm >/dev/null
}

install_node() {
  has_node && return
  [[ $EUID -eq 0 ]] || fail "Node.js 18 or newer with npm is missing: apt-get install nodejs npm, as root"
  command -v apt-get >/dev/null || fail "Node.js 18 or newer with npm is missing and there is no apt-get"
  echo "setup: installing Node.js"
  export DEBIAN_FRONTEND=noninteractive
  apt_install nodejs || fail "apt-get could not install nodejs"
  has_node || apt_install npm || fail "apt-get could not install npm" # some packages bring it along
  has_node || fail "nodejs and npm are installed, yet node or npm is not on the path"
}

# The Node examples are run by tests.
install_node_packages() {
  local folder wanted have
  node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 18 ? 1 : 0)' ||
    fail "Node.js $(node --version) is too old: 18 or newer is needed"
  for folder in tests/docs/node examples/consumer-node; do
    have=$folder/node_modules/.wanted
    wanted=$(sha256sum <"$folder/package-lock.json")
    [[ -f $have && $(<"$have") == "$wanted" ]] && continue
    echo "setup: installing the locked packages of $folder"
    (cd "$folder" && npm ci --silent --no-audit --no-fund --ignore-scripts) ||
      fail "npm could not install the locked packages of $folder"
    echo "$wanted" >"$have"
  done
}

apt_install() {
  apt-get install -qq -y --no-install-recommends -o Dpkg::Options::=--force-confold "$@" \
    </dev/null >/dev/null 2>&1 && return
  apt-get update -qq </dev/null
  apt-get install -qq -y --no-install-recommends -o Dpkg::Options::=--force-confold "$@" \
    </dev/null >/dev/null
}

make_venv
install_requirements
install_postgres
install_rabbitmq
install_node
install_node_packages
