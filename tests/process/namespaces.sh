# Hosts made of namespaces, for tests of several of them. Sourced.

. "$(dirname "${BASH_SOURCE[0]}")/../lacks.sh"
skip() { echo "SKIPPED: $*"; exit 77; }

# enter_namespaces SCRIPT WORDS...: goes on in SCRIPT, called once more within namespaces of its own: none has a
# name outside, and they have a process tree of their own. Whatever ends the script, the kernel ends every process
# in them, and with the last one go the namespaces and the files on their tmpfs, /run.
enter_namespaces() {
  local tool inside why
  [ "${LAMELLA_TEST_INSIDE:-}" != yes ] || { mount -t tmpfs tmpfs /run; return; }
  command -v unshare >/dev/null || skip "unshare is missing (package: util-linux)"
  command -v ip >/dev/null || lacks iproute2 ip
  for tool in openssl python3; do command -v "$tool" >/dev/null || lacks "$tool" "$tool"; done
  inside=(unshare --net --mount --pid --fork --kill-child --mount-proc)
  [ "$(id -u)" = 0 ] || inside=("${inside[0]}" --user --map-root-user "${inside[@]:1}")
  why=$("${inside[@]}" bash -c 'mount -t tmpfs tmpfs /run && ip netns add probe &&
    ip link add wire type veth peer name eth0 netns probe && ip link add bridge0 type bridge' 2>&1) ||
    skip "no namespaces for user $(id -un) here: $(echo "$why" | tail -n 1)"
  LAMELLA_TEST_INSIDE=yes exec "${inside[@]}" "$@"
}

# make_certificates HOSTS...: a throw-away authority in the working folder, made as docs/operations.md says, with a
# certificate for each host, and `secret`.
make_certificates() {
  local host
  openssl req -x509 -newkey ed25519 -nodes -days 2 -subj /CN=lamella-ca -keyout ca.key -out ca.pem 2>/dev/null
  for host in "$@"; do
    openssl req -newkey ed25519 -nodes -subj "/CN=$host" -keyout "$host.key" -out "$host.csr" 2>/dev/null
    openssl x509 -req -in "$host.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out "$host.pem" 2>/dev/null
  done
  openssl rand -hex 32 >secret
  chmod 0400 secret
}
