#!/bin/sh
# generate.sh OUT: compiles src/NAME.cu to PTX, where OUT ends in NAME.ptx. The
# output is deterministic.
set -eu
cd "$(dirname "$0")"
out=${1:?the file to write}
name=$(basename "$out" .ptx)
case $out in /*) ;; *) out=$PWD/$out ;; esac
cd src
clang-22 -x cuda --cuda-device-only -nocudainc -nocudalib -fdeclspec -O3 -ffp-contract=off -Wall -Wextra -Werror \
	--cuda-gpu-arch=sm_90 --cuda-feature=+ptx84 -S -o - "$name.cu" |
	sed -e '/^[[:space:]]*\/\/ \(begin\|end\) inline asm$/d' -e 's/[[:space:]]*\/\/ .*$//' -e '/^[[:space:]]*\/\/.*$/d' -e '/^[[:space:]]*$/d' >"$out"
grep -q '^\.version 8\.4$' "$out" || { echo "clang-22 did not write PTX 8.4" >&2; exit 1; }
