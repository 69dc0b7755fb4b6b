#!/usr/bin/env bash
# Builds the project for machines that this one is not (docs/platforms.md):
#
#   tools/cross.sh arm64     the whole of it for arm64 Linux, and the pure rooms' tests by qemu-user
#   tools/cross.sh macos     the whole of it for aarch64-macos
#   tools/cross.sh freebsd   and for x86_64-freebsd
#
# What it fetches lies under build/cross: Debian's packages for arm64 (unpacked, not installed),
# ziglang from PyPI, the sources of OpenSSL (for its headers) and pugixml. Installs Debian's cross compiler and qemu-user.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly root=$PWD
readonly cross=$root/build/cross

die() { printf 'cross: %s\n' "$*" >&2; exit 1; }
step() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

install_missing() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  step "installing ${missing[*]}"
  as_root apt-get update -q > /dev/null
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" > /dev/null
}

# The version of Boost that this machine builds with: its headers serve every target.
boost_version() { sed -n 's/^#define BOOST_LIB_VERSION "\([0-9]*\)_\([0-9]*\).*/\1.\2/p' /usr/include/boost/version.hpp; }

# apt with lists, cache and state of its own: nothing of this system changes. private_apt STATE ARGUMENTS…
private_apt() {
  local state=$1
  shift
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  : > "$state/status"
  apt-get -q -o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state/cache" -o "Dir::State::status=$state/status" "$@"
}

# ---- arm64 Linux ---------------------------------------------------------------------------------

arm64_root() {
  [ -e "$cross/arm64-root/.ready" ] && return
  step "libraries for arm64"
  local boost apt
  boost=$(boost_version)
  apt=(private_apt "$cross/apt-arm64" -o APT::Architecture=arm64 -o APT::Architectures=arm64)
  "${apt[@]}" update > /dev/null
  rm -rf "$cross/arm64-root" "$cross/arm64-packages"
  mkdir -p "$cross/arm64-root" "$cross/arm64-packages"
  (cd "$cross/arm64-packages" && "${apt[@]}" download "libboost$boost-dev" "libboost-json$boost-dev" \
    "libboost-json$boost.0" "libboost-container$boost-dev" "libboost-container$boost.0" \
    "libboost-system$boost-dev" "libboost-system$boost.0" libfmt-dev libfmt9 libexpected-dev libcli11-dev \
    libpugixml-dev libpugixml1v5 libgtest-dev libgmock-dev libbenchmark-dev libbenchmark1debian \
    librapidcheck-dev libssl-dev libssl3 > /dev/null)
  local package
  for package in "$cross"/arm64-packages/*.deb; do dpkg-deb -x "$package" "$cross/arm64-root"; done
  # The cross compiler does not look there by itself, as a native one does.
  cp -a "$cross/arm64-root/usr/include/aarch64-linux-gnu/." "$cross/arm64-root/usr/include/"
  touch "$cross/arm64-root/.ready"
}

# What takes values and returns values, and the codecs: no process is started, no socket opened.
readonly pure=(base core model spec sched repl plan beam)

arm64() {
  install_missing g++-aarch64-linux-gnu qemu-user
  arm64_root
  local build=$root/build/arm64
  [ -e "$build/build.ninja" ] || cmake -S . -B "$build" -G Ninja --toolchain cmake/toolchains/aarch64-linux.cmake \
    -DZED_CROSS_ROOT="$cross/arm64-root" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 > "$cross/arm64.log"
  local tests=("${pure[@]/#/zed_}")
  tests=("${tests[@]/%/_test}")
  step "building for arm64 Linux"
  ninja --quiet -C "$build" "${tests[@]}" zedctl zed-agent zed-supervise zed-controller
  step "the pure rooms' tests, by qemu-user"
  # beam's nodes have sockets and deadlines, for which emulated handshakes are too slow.
  GTEST_FILTER='-Node.*:NodeTls.*' ctest --test-dir "$build" --output-on-failure -R "^unit\.($(IFS='|'; echo "${pure[*]}"))\$"
}

# ---- macOS and FreeBSD ---------------------------------------------------------------------------

ziglang() {
  [ -e "$cross/zig/.ready" ] && return
  step "ziglang (from PyPI)"
  rm -rf "$cross/zig"
  /usr/bin/python3 -m venv "$cross/zig"
  "$cross/zig/bin/pip" install -q --disable-pip-version-check ziglang
  touch "$cross/zig/.ready"
}

# Compilers as CMake wants them: one program each, for one target.
compilers() { # TARGET
  local name extra zig version
  zig=$("$cross/zig/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/zig
  version=$("$zig" version)
  mkdir -p "$cross/$1/bin"
  for name in cc c++ ar ranlib; do
    extra=
    # ziglang's own default is to trap on undefined behaviour; the sanitizer build looks for that.
    case $name in cc | c++) extra="-target $1 -fno-sanitize=undefined" ;; esac
    cat > "$cross/$1/bin/$name.new" << EOF
#!/bin/sh
# ziglang $version
export ZIG_GLOBAL_CACHE_DIR=$cross/zig-cache ZIG_LOCAL_CACHE_DIR=$cross/zig-cache
exec $zig $name $extra "\$@"
EOF
    # One that is the same keeps its time: that is what ccache knows a compiler by.
    cmp -s "$cross/$1/bin/$name.new" "$cross/$1/bin/$name" || mv "$cross/$1/bin/$name.new" "$cross/$1/bin/$name"
    rm -f "$cross/$1/bin/$name.new"
    chmod +x "$cross/$1/bin/$name"
  done
}

# The upstream sources of the two libraries that are more than headers.
library_sources() {
  [ -e "$cross/sources/.ready" ] && return
  step "sources of OpenSSL and pugixml"
  local state=$cross/apt-source
  rm -rf "$cross/sources"
  mkdir -p "$state/parts" "$cross/sources"
  sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/*.sources > "$state/parts/source.sources"
  local apt=(private_apt "$state" -o "Dir::Etc::sourceparts=$state/parts" -o Dir::Etc::sourcelist=/dev/null)
  "${apt[@]}" update > /dev/null
  # Debian's own changes to them are not wanted, so it does not matter if a mirror lacks them.
  (cd "$cross/sources" && "${apt[@]}" source --download-only openssl pugixml > /dev/null 2>&1) || true
  compgen -G "$cross/sources/openssl_*.orig.tar.gz" > /dev/null || die "no sources of OpenSSL came"
  compgen -G "$cross/sources/pugixml_*.orig.tar.gz" > /dev/null || die "no sources of pugixml came"
  touch "$cross/sources/.ready"
}

headers() { # TARGET
  local name
  mkdir -p "$cross/$1/include"
  for name in boost fmt tl CLI; do ln -sfn "/usr/include/$name" "$cross/$1/include/$name"; done
}

unpacked() { # LIBRARY FOLDER
  mkdir -p "$2"
  tar xf "$cross"/sources/"$1"_*.orig.tar.gz -C "$2" --strip-components 1
}

# What OpenSSL's own lists of exported functions name, as shared libraries without a body: programs
# are linked against such in every SDK, and find the real ones where they run (FreeBSD's base system,
# Homebrew's openssl@3).
stub() { # TARGET crypto|ssl
  local name=lib$2 source=$cross/$1/openssl-source lib=$cross/$1/openssl/lib prefix type words
  case $1 in
    *-macos) prefix=_ type='' words=(-o "$lib/$name.dylib" "-Wl,-install_name,/opt/homebrew/opt/openssl@3/lib/$name.3.dylib") ;;
    *) prefix='' type=@function words=(-o "$lib/$name.so" "-Wl,-soname,$name.so.30") ;;
  esac
  awk -v "prefix=$prefix" -v "type=$type" '
    BEGIN { print ".text" }
    $4 ~ /^EXIST::FUNCTION/ {
      print ".globl " prefix $1
      if (type) print ".type " $1 "," type
      print prefix $1 ":"
    }' "$source/util/$name.num" > "$lib/$name.s"
  "$cross/$1/bin/cc" -shared "$lib/$name.s" "${words[@]}"
}

openssl() { # TARGET CONFIGURATION
  [ -e "$cross/$1/openssl/.ready" ] && return
  step "OpenSSL for $1: headers, and what to link against"
  local source=$cross/$1/openssl-source bin=$cross/$1/bin
  rm -rf "$source" "$cross/$1/openssl"
  mkdir -p "$cross/$1/openssl/lib"
  unpacked openssl "$source"
  (cd "$source" && CC="$bin/cc" ./Configure "$2" no-asm no-tests > configure.log 2>&1 &&
    make build_generated > make.log 2>&1) || die "OpenSSL's headers are not made: the logs are in $source"
  ln -s "$source/include" "$cross/$1/openssl/include"
  stub "$1" crypto
  stub "$1" ssl
  touch "$cross/$1/openssl/.ready"
}

by_ziglang() { # NAME TARGET OPENSSL-CONFIGURATION
  install_missing cmake ninja-build make perl
  ziglang
  compilers "$2"
  library_sources
  headers "$2"
  [ -e "$cross/$2/pugixml/src/pugixml.cpp" ] || unpacked pugixml "$cross/$2/pugixml"
  openssl "$2" "$3"
  local build=$root/build/$1
  [ -e "$build/build.ninja" ] || cmake -S . -B "$build" -G Ninja --toolchain cmake/toolchains/zig.cmake \
    -DZED_ZIG="$cross/$2/bin" -DZED_ZIG_TARGET="$2" -DZED_CROSS_ROOT="$cross/$2" -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON > "$cross/$1.log"
  step "building for $2"
  ninja --quiet -C "$build" zed-supervise zedctl zed-agent zed-controller
}

macos() { by_ziglang macos aarch64-macos darwin64-arm64-cc; }
freebsd() { by_ziglang freebsd x86_64-freebsd BSD-x86_64; }

[ $# -gt 0 ] || set -- arm64 macos freebsd
mkdir -p "$cross"
for target in "$@"; do
  case $target in
    arm64 | macos | freebsd) "$target" ;;
    *) die "there is no target \"$target\": arm64, macos or freebsd" ;;
  esac
done
