#!/bin/sh
# run.sh COMMAND: the tests and benchmarks of a bundle, on this machine's GPUs.
#
#   test [ARGS]   all tests that ask for a GPU; ARGS go to each test binary,
#                 as in: run.sh test -test.short
#   bench [ARGS]  their benchmarks
#   accept        what hw is held to, one line for each point; under 8 minutes
#   sanitize      a small matrix under compute-sanitizer, where that is installed
#
# compare lies beside it. A GPU that is missing is a failure. NVLink multicast
# stays off.
set -u
cd "$(dirname "$0")"
export HW_REQUIRE_GPU=1 NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1 TORCH_SYMM_MEM_DISABLE_MULTICAST=1

usage() { sed -n 's/^# \{0,1\}//; 2,11p' run.sh >&2; exit 2; }

# tests DIR PATTERN ARGS: one test binary, in its own folder.
tests() {
	dir=$1 pattern=$2
	shift 2
	(cd "tests/$dir" && ./run.test -test.count=1 -test.timeout=20m -test.run="^($pattern)\$" "$@")
}

# every COMMAND FILE ARGS: COMMAND for each binary that has what FILE lists.
every() {
	failed=0
	for list in tests/*/"$1"; do
		names=$(cat "$list")
		[ -n "$names" ] || continue
		dir=$(basename "$(dirname "$list")")
		echo "== $dir"
		if [ "$1" = benchmarks ]; then
			(shift; cd "tests/$dir" && ./run.test -test.run='^$' -test.bench="^($names)\$" "$@") || failed=1
		else
			(shift; tests "$dir" "$names" "$@") || failed=1
		fi
	done
	return $failed
}

# sanitize prints one line: done when 3.
sanitize() {
	if ! command -v compute-sanitizer >/dev/null; then
		echo "done when 3: not run: compute-sanitizer is not on the PATH"
		return 0
	fi
	line="done when 3:" bad=0
	for tool in memcheck initcheck synccheck; do
		log=$logs/$tool
		start=$(date +%s)
		(cd tests/hw_tandem && TANDEM_DEADLINE_SCALE=60 timeout 120 compute-sanitizer --tool $tool --report-api-errors no --error-exitcode 9 ./run.test -test.run='^TestSmall$' -test.v) >"$log" 2>&1
		code=$?
		said=$(sed -n 's/^=* ERROR SUMMARY: //p' "$log" | tail -n 1)
		calls=$(sed -n 's/.*: \([0-9]* calls\)$/\1/p' "$log" | tail -n 1)
		line="$line $tool ${said:-ended with code $code} in ${calls:-no calls}, $(($(date +%s) - start)) s;"
		[ $code = 0 ] || { bad=1; tail -n 20 "$log" >&2; }
	done
	echo "${line%;}"
	return $bad
}

# accept runs what the points are about and prints their lines, which the tests
# log.
accept() {
	bad=0 start=$(date +%s)
	for dir in hw_cuda hw_tandem cmd_compare; do
		names=$(cat "tests/$dir/tests")
		# Of the command's, those of the implementations of its own.
		[ "$dir" = cmd_compare ] && names='TestGPU(Conformance|Mutants|RLKernel.*)'
		tests "$dir" "$names" -test.v >"$logs/$dir" 2>&1 || {
			bad=1
			grep -E '^ *--- FAIL|^panic|Error:|Messages:' "$logs/$dir" | head -n 30 >&2
			echo "FAILED: $dir; all of it is in $logs/$dir" >&2
		}
		tail -n 3 "$logs/$dir" | grep '^tests that ask' | sed "s/^/$dir: /"
	done
	sanitize >"$logs/sanitize" || bad=1
	cat "$logs"/* | sed -n 's/^.*\(done when [0-9].*\)$/\1/p' | sort
	echo "$(($(date +%s) - start)) s in all; logs are in $logs"
	return $bad
}

logs=${LOGS:-$(mktemp -d)}
mkdir -p "$logs"
command=${1:-}
[ $# -gt 0 ] && shift
case $command in
test) every tests "$@" ;;
bench) every benchmarks "$@" ;;
accept) accept ;;
sanitize) sanitize ;;
*) usage ;;
esac
