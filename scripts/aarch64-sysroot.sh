#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks the arm64 libraries that r3ring is built with below a directory, without
# installing anything: apt looks them up as for a machine that has no package yet.
#
#	scripts/aarch64-sysroot.sh DIR
#
# Debian and its kin only. The compiler and qemu-user are packages of this machine.
set -eu

root=${1:?usage: $0 DIR}
wanted='libc6-dev libgcc-12-dev liburing-dev libjansson-dev libcriterion-dev libxxhash-dev
	uthash-dev libmd-dev libzstd-dev libsqlite3-dev libmicrohttpd-dev
	libpng-dev libncurses-dev'

if ! command -v apt-get > /dev/null; then
	echo "$0: no apt-get: put an arm64 Debian's /usr and /lib below $root by hand:" $wanted >&2
	exit 1
fi
mkdir -p "$root"
root=$(cd "$root" && pwd)
apt=$root/apt
mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/etc"
: > "$apt/status"

# The mirror that this machine uses, but of its repositories only Debian's own.
apt-get indextargets --format 'deb $(REPO_URI) $(CODENAME) $(COMPONENT)' \
	'Created-By: Packages' 'Origin: Debian' | sort -u > "$apt/etc/sources.list"
if [ ! -s "$apt/etc/sources.list" ]; then
	echo "$0: no repository of Debian's is known: run apt-get update as root first" >&2
	exit 1
fi

for_arm64()
{
	DEBIAN_FRONTEND=noninteractive apt-get -qq -o APT::Architecture=arm64 \
		-o APT::Architectures=arm64 -o APT::Sandbox::User=root \
		-o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt" \
		-o Dir::Etc::sourcelist="$apt/etc/sources.list" -o Dir::Etc::sourceparts=- \
		-o Debug::NoLocking=1 "$@"
}

for_arm64 update
for_arm64 install --download-only --yes --no-install-recommends $wanted > "$apt/log" 2>&1 || {
	cat "$apt/log" >&2
	exit 1
}
for package in "$apt"/archives/*.deb; do
	dpkg-deb -x "$package" "$root"
done
