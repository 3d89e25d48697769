#!/bin/sh
# The page tests drive a real Chromium: use the one that is there, else install the system's package, else say what to do.
# The headless shell is the same browser without its windows, and takes half the processor's time.
for name in chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable; do
  command -v "$name" >/dev/null 2>&1 && exit 0
done
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  echo "Installing Chromium for the page tests …"
  apt-get update -qq >/dev/null 2>&1
  for name in chromium-headless-shell chromium; do
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$name" fonts-liberation >/dev/null 2>&1 && exit 0
  done
fi
echo "The page tests need Chromium or Chrome on the PATH: install the package 'chromium' of your system, then run make test again."
exit 1
