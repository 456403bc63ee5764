#!/usr/bin/env python3
"""Java runtimes of releases that Debian 12 has not, from other suites of Debian, for test-all.

    jdks.py FOLDER    fetches what is missing there and prints the homes, with colons between,
                      as SONDE_JDKS wants them

Packages are unpacked, never installed. Those that want a newer C library get that of their suite
beside them: the loader and the search path in their launcher lead there.
"""
import glob
import os
import shutil
import subprocess
import sys

RELEASES = {"8": "sid", "11": "bullseye-security", "21": "trixie"}
# What a launcher needs of a suite whose C library is newer than ours.
LIBRARIES = ("libc6", "zlib1g", "libstdc++6", "libgcc-s1")
SUITES = {"bookworm": "debian", "trixie": "debian", "sid": "debian",
          "bullseye-security": "debian-security"}
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Apt:
    """apt-get with lists and a cache of its own; that of the machine is left as it is."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("lists/partial", "cache/archives/partial", "debs"):
            os.makedirs(os.path.join(folder, name), exist_ok=True)
        sources = os.path.join(folder, "sources.list")
        with open(sources, "w", encoding="utf-8") as f:
            for suite, archive in SUITES.items():
                f.write(f"deb [signed-by={KEYRING}] http://deb.debian.org/{archive} {suite} main\n")
        self.options = [f"-oDir::Etc::sourcelist={sources}", "-oDir::Etc::sourceparts=-",
                        f"-oDir::State::lists={folder}/lists", f"-oDir::Cache={folder}/cache",
                        "-oAPT::Sandbox::User=root", "-oAcquire::Languages=none",
                        "-oAcquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"]
        self.run("update")

    def run(self, *args):
        subprocess.run(["apt-get", "-qq", *self.options, *args], check=True, timeout=900,
                       cwd=os.path.join(self.folder, "debs"), stdout=sys.stderr)

    def unpack(self, package, suite, into):
        self.run("download", f"{package}/{suite}")
        deb = glob.glob(os.path.join(self.folder, "debs", package + "_*.deb"))[0]
        subprocess.run(["dpkg-deb", "-x", deb, into], check=True, timeout=300)
        os.unlink(deb)


def lead_to(root, home):
    """Its settings are links to /etc, which lies below root."""
    for folder, folders, files in os.walk(home):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            if os.path.islink(path) and os.readlink(path).startswith("/etc/"):
                target = root + os.readlink(path)
                os.unlink(path)
                os.symlink(target, path)


def give_libraries(apt, suite, root, java):
    for package in LIBRARIES:
        apt.unpack(package, suite, root)
    apt.unpack("patchelf", "bookworm", root)
    libraries = os.path.join(root, "usr", "lib", "x86_64-linux-gnu")
    path = ":".join([libraries, "$ORIGIN/../lib", "$ORIGIN/../lib/amd64/jli"])
    subprocess.run([os.path.join(root, "usr", "bin", "patchelf"), "--set-interpreter",
                    os.path.join(libraries, "ld-linux-x86-64.so.2"), "--force-rpath",
                    "--set-rpath", path, java], check=True, timeout=60)


def fetch(apt, release, root):
    suite = RELEASES[release]
    apt.unpack(f"openjdk-{release}-jre-headless", suite, root)
    home = home_in(root, release)
    lead_to(root, home)
    if suite != "bullseye-security":
        give_libraries(apt, suite, root, os.path.realpath(os.path.join(home, "bin", "java")))


def home_in(root, release):
    return os.path.join(root, "usr", "lib", "jvm", f"java-{release}-openjdk-amd64")


def homes(folder):
    """Of all releases; those that are not there yet are fetched."""
    found, apt = [], None
    for release in RELEASES:
        root = os.path.join(os.path.abspath(folder), release)
        if not os.path.isdir(root):
            apt = apt or Apt(os.path.join(os.path.abspath(folder), "apt"))
            os.makedirs(root)
            try:
                fetch(apt, release, root)
            except BaseException:
                # A half must not be taken for the whole the next time.
                shutil.rmtree(root)
                raise
        found.append(home_in(root, release))
    if apt:
        shutil.rmtree(apt.folder)
    return found


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    print(":".join(homes(sys.argv[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
