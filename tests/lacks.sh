# lacks PACKAGE WHAT: ends a test that lacks WHAT, which PACKAGE of tests/packages has. Sourced. The test is skipped;
# under tests/run, which has installed all of them, it fails: the package is not in the list.
lacks() {
  if [ "${TEST_PACKAGES:-}" = installed ]; then
    echo "FAILED: no $2, although tests/packages is installed; add $1 there"
    exit 1
  fi
  echo "SKIPPED: no $2; install the package $1"
  exit 77
}
