# Sets PROMETHEUS and PROMTOOL to the programs of that name, or to nothing: those of this machine, else those of the
# Debian package, unpacked once beside the program that is tested (19 MB) and installed nowhere. Sourced.
#   . prometheus.sh FOLDER
PROMETHEUS=$(command -v prometheus) PROMTOOL=$(command -v promtool)
if [ -z "$PROMETHEUS" ] || [ -z "$PROMTOOL" ]; then
  unpacked=$1/prometheus_package
  if [ ! -e "$unpacked/usr/bin/promtool" ] && command -v apt-get >/dev/null; then
    rm -rf "$unpacked" "$unpacked.new"
    mkdir "$unpacked.new" && (cd "$unpacked.new" && timeout 120 apt-get -qq download prometheus &&
      dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb) >/dev/null 2>&1 && mv "$unpacked.new" "$unpacked"
    rm -rf "$unpacked.new"
  fi
  PROMETHEUS=$unpacked/usr/bin/prometheus PROMTOOL=$unpacked/usr/bin/promtool
  [ -x "$PROMTOOL" ] || PROMETHEUS='' PROMTOOL=''
fi
