#!/bin/sh
# build.sh [ARCH]: what a machine with GPUs and without Go needs, as one archive:
# the test binaries of all packages with tests on GPUs, compare, and run.sh. ARCH
# is amd64 or arm64; cgo needs a C compiler for it. Nothing of CUDA is needed
# here. The binaries need glibc 2.34 there.
set -eu
cd "$(dirname "$0")/../.."
go=${GO:-go}
here=$($go env GOHOSTARCH)
arch=${1:-$here}
case $arch in
amd64) cross=x86_64-linux-gnu-gcc package=gcc-x86-64-linux-gnu ;;
arm64) cross=aarch64-linux-gnu-gcc package=gcc-aarch64-linux-gnu ;;
*) echo "gpu-bundle: there is no bundle for $arch: amd64 or arm64" >&2; exit 1 ;;
esac
cc=$($go env CC)
if [ "$arch" != "$here" ] || [ "$($go env GOHOSTOS)" != linux ]; then
	cc=${CROSS_CC:-$cross}
fi
if ! command -v "${cc%% *}" >/dev/null; then
	echo "gpu-bundle: linux/$arch needs $cc: install it (Debian: apt-get install $package), or name another in CROSS_CC" >&2
	exit 1
fi
name=tandem-gpu-$arch
out=.bin/$name
rm -rf "$out" "$out.tar.gz"
mkdir -p "$out/tests"
build() { GOOS=linux GOARCH=$arch CGO_ENABLED=1 CC=$cc $go "$@"; }
build build -tags gpu -trimpath -ldflags='-s -w' -o "$out/compare" ./cmd/compare
grep -rl 'gputest\.Open(' --include='*gpu_test.go' hw cmd | xargs -n 1 dirname | sort -u | while read -r dir; do
	at=$out/tests/$(echo "$dir" | tr / _)
	mkdir "$at"
	build test -c -tags gpu -trimpath -ldflags='-s -w' -o "$at/run.test" "./$dir"
	if [ -d "$dir/testdata" ]; then cp -R "$dir/testdata" "$at/"; fi
	# The tests that ask for a GPU, by the files that hold them.
	ls "$dir"/*gpu_test.go | xargs sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' | grep -v '^TestMain$' | paste -sd '|' - >"$at/tests"
	ls "$dir"/*gpu_test.go | xargs sed -n 's/^func \(Benchmark[A-Za-z0-9_]*\)(.*/\1/p' | paste -sd '|' - >"$at/benchmarks"
	echo "$dir"
done
cp hw/bundle/run.sh "$out/"
tar -C .bin -czf "$out.tar.gz" "$name"
ls -lh "$out.tar.gz"
