#!/usr/bin/env python3
"""Finds Go toolchains and builds the programs that the tests profile.

    build.py --list                          the toolchains on this machine
    build.py [--go VERSION] [--out DIR] TARGET VARIANT

The module is what tests import: toolchains(), fetch(), newest(), build(). A build lies in
OUT/VERSION/TARGET-VARIANT/ and is made again only when a source of the targets has changed.
Only the standard library is needed; builds do not use the network.
"""
import argparse
import fcntl
import functools
import glob
import hashlib
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MANDATORY = "/usr/lib/go-1.19/bin/go"  # Debian 12's golang-1.19

GO_TARGETS = ("heap", "nopprof", "bigtable", "demo", "leak", "withheld", "cpugo", "goroutines",
              "contention", "metrics", "oom", "execs")
C_TARGETS = ("fakes",)  # variants: plain, buildinfo
VARIANTS = (
    "plain", "strip", "pie", "pie-strip", "cgo", "cgo-strip", "cgo-pie", "cgo-pie-strip",
    "cgotrace", "cshared", "cshared-strip", "plugin", "plugin-strip", "pgo", "pgo-strip", "nosections", "packed", "arm64",
    "arm64-strip", "386", "smallheap-strip", "noopt-strip", "buildinfo",
)


class BuildError(Exception):
    """A target could not be built; the text says which and why."""


def version_key(version):
    """'1.22.12' as a tuple that sorts; a release candidate sorts before its release."""
    m = re.fullmatch(r"(\d+)\.(\d+)(?:\.(\d+))?(?:(rc|beta)(\d+))?", version)
    if not m:
        return (0, 0, 0, 0, 0)
    major, minor, patch, pre, n = m.groups()
    stage = {"beta": 0, "rc": 1, None: 2}[pre]
    return (int(major), int(minor), int(patch or 0), stage, int(n or 0))


@functools.lru_cache(maxsize=None)
def go_version(go):
    """The version of a go command ('1.19.8'), or None when it does not run."""
    try:
        env = dict(os.environ, GOTOOLCHAIN="local", GOENV="off", GOFLAGS="")
        out = subprocess.run([go, "version"], env=env, capture_output=True, text=True,
                             timeout=60, check=True, cwd="/").stdout
    except (OSError, subprocess.SubprocessError):
        return None
    m = re.search(r"\bgo(\d+\.\d+(?:\.\d+)?(?:(?:rc|beta)\d+)?)\b", out)
    return m.group(1) if m else None


def module_cache():
    path = os.environ.get("GOMODCACHE")
    if path:
        return path
    gopath = os.environ.get("GOPATH", os.path.expanduser("~/go")).split(":")[0]
    return os.path.join(gopath, "pkg", "mod")


def make_executable(goroot):
    """The module cache holds toolchains without execute bits; the go command sets them on use."""
    for pattern in ("bin/*", "pkg/tool/*/*"):
        for path in glob.glob(os.path.join(goroot, pattern)):
            mode = os.stat(path).st_mode
            if stat.S_ISREG(mode) and not mode & stat.S_IXUSR:
                os.chmod(path, stat.S_IMODE(mode) | 0o555)


def being_unpacked(goroot):
    """Another process is fetching it; the go command leaves this mark until all of it is there."""
    version = os.path.basename(goroot).partition("@")[2]
    return os.path.exists(os.path.join(module_cache(), "cache", "download", "golang.org",
                                       "toolchain", "@v", version + ".partial"))


def toolchains():
    """[(version, path of go)], one per version, oldest first; Debian's 1.19 wins over its equals."""
    found = {}
    candidates = [MANDATORY]
    candidates += sorted(glob.glob("/usr/lib/go-*/bin/go"))
    on_path = shutil.which("go")
    if on_path:
        candidates.append(os.path.realpath(on_path))
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    for root in sorted(glob.glob(os.path.join(
            module_cache(), "golang.org", f"toolchain@v*-go*.linux-{arch}"))):
        if being_unpacked(root):
            continue
        try:
            make_executable(root)
        except OSError:
            continue
        candidates.append(os.path.join(root, "bin", "go"))
    for go in candidates:
        version = go_version(go) if os.access(go, os.X_OK) else None
        if version:
            found.setdefault(version, go)
    return sorted(found.items(), key=lambda item: version_key(item[0]))


def mandatory():
    """Debian's Go, which every machine that runs the tests has; else the oldest there is."""
    if os.access(MANDATORY, os.X_OK) and go_version(MANDATORY):
        return go_version(MANDATORY), MANDATORY
    found = toolchains()
    if not found:
        raise BuildError("no Go toolchain on this machine: install golang-1.19")
    return found[0]


def any_go():
    """A go command to ask the module proxy with: the newest, for its mechanism is the best."""
    found = toolchains()
    return found[-1][1] if found else None


def proxy_environment():
    """For asking the proxy: the user's own settings, but no flags that an old go rejects."""
    return dict(os.environ, GOTOOLCHAIN="local", GOFLAGS="-mod=mod", GO111MODULE="on")


def fetch(version, timeout=600):
    """The path of go of that version, downloaded if need be; None where it cannot be had."""
    for have, go in toolchains():
        if have == version:
            return go
    go = any_go()
    if not go:
        return None
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    module = f"golang.org/toolchain@v0.0.1-go{version}.linux-{arch}"
    try:
        subprocess.run([go, "mod", "download", module], env=proxy_environment(), cwd="/",
                       capture_output=True, timeout=timeout, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return dict(toolchains()).get(version)


def released(timeout=60):
    """All versions of Go that the module proxy offers for this machine; [] when unreachable."""
    kept = os.path.join(default_outdir(), "released")
    try:
        # Suites that start one after the other ask once, and agree about the newest.
        if time.time() - os.stat(kept).st_mtime < 3600:
            with open(kept) as f:
                return f.read().split()
    except OSError:
        pass
    found = ask_released(timeout)
    if found:
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        with open(f"{kept}.{os.getpid()}", "w") as f:
            f.write("\n".join(found))
        os.rename(f.name, kept)
    return found


def ask_released(timeout):
    go = any_go()
    if not go:
        return []
    try:
        out = subprocess.run([go, "list", "-m", "-versions", "golang.org/toolchain"],
                             env=proxy_environment(), cwd="/", capture_output=True, text=True,
                             timeout=timeout, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    versions = re.findall(rf"-go(\d+\.\d+(?:\.\d+)?)\.linux-{arch}\b", out)
    return sorted(set(versions), key=version_key)


@functools.lru_cache(maxsize=None)
def newest():
    """(version, go) of the newest release that can be had: from the proxy, else from disk."""
    disk = toolchains()
    listed = released()
    if listed and (not disk or version_key(listed[-1]) > version_key(disk[-1][0])):
        go = fetch(listed[-1])
        if go:
            return listed[-1], go
    return disk[-1] if disk else None


# --- building -----------------------------------------------------------------------------------


def source_hash():
    digest = hashlib.sha256()
    for directory, names, files in sorted(os.walk(HERE)):
        names[:] = [n for n in names if n != "__pycache__"]
        for name in sorted(files):
            path = os.path.join(directory, name)
            digest.update(os.path.relpath(path, HERE).encode())
            with open(path, "rb") as f:
                digest.update(f.read())
    return digest.hexdigest()


def go_environment(cgo, arch=None, experiment=None):
    env = dict(os.environ, GOTOOLCHAIN="local", GOENV="off", GOPROXY="off", GO111MODULE="on",
               GOWORK="off", GOFLAGS="-mod=mod", CGO_ENABLED="1" if cgo else "0")
    for name in ("GOARCH", "GOOS", "GOROOT", "GOEXPERIMENT", "GOAMD64"):
        env.pop(name, None)
    if arch:
        env["GOARCH"] = arch
    if experiment:
        env["GOEXPERIMENT"] = experiment
    return env


def run(argv, env=None, cwd=HERE):
    done = subprocess.run(argv, env=env, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"{' '.join(argv)} failed:\n{done.stderr}{done.stdout}")


def go_build(go, package, out, cgo=False, arch=None, ldflags=(), flags=(), experiment=None):
    argv = [go, "build", "-o", out]
    if version_key(go_version(go)) >= (1, 18):
        argv.append("-buildvcs=false")
    if ldflags:
        argv += ["-ldflags", " ".join(ldflags)]
    run(argv + list(flags) + ["./" + package], env=go_environment(cgo, arch, experiment))


def cc_build(source, out, flags=()):
    run([os.environ.get("CC", "gcc"), "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g", "-Wall",
         "-Wextra", "-o", out, source, *flags])


def drop_sections(source, out):
    """A copy without section headers, as some packers and strippers leave it."""
    with open(source, "rb") as f:
        data = bytearray(f.read())
    struct.pack_into("<Q", data, 40, 0)   # e_shoff
    struct.pack_into("<HH", data, 60, 0, 0)  # e_shnum, e_shstrndx
    with open(out, "wb") as f:
        f.write(data)
    os.chmod(out, 0o755)


def cpu_profile(go, outdir):
    """A CPU profile of a program that does little but allocate with this version's runtime."""
    program = build("bigtable", go, "plain", outdir)
    path = os.path.join(os.path.dirname(program), "cpu.pprof")
    if not os.path.exists(path):
        partial = f"{path}.{os.getpid()}"
        subprocess.run([program, "-rate", "512", "-load", "-cpu", partial],
                       input=b"spin 4\nquit\n", stdout=subprocess.DEVNULL, timeout=120, check=True)
        os.rename(partial, path)
    return path


def build_go(target, go, variant, directory, outdir):
    """Builds one variant of a Go target into directory; returns the program's path."""
    out = os.path.join(directory, target)
    words = variant.split("-")
    kind = words[0]
    ldflags = ["-s", "-w"] if "strip" in words else []
    if kind in ("cgo", "cgotrace", "cshared", "plugin") and target != "heap":
        raise BuildError(f"only the heap target has the variant {variant}")
    if kind == "cgo":
        flags = ["-buildmode=pie"] if "pie" in words else []
        go_build(go, "cgo", out, cgo=True, ldflags=ldflags + ["-linkmode=external"], flags=flags)
    elif kind == "cshared":
        go_build(go, "cshared", os.path.join(directory, "libtarget.so"), cgo=True,
                 ldflags=ldflags, flags=["-buildmode=c-shared"])
        cc_build(os.path.join(HERE, "cshared", "host", "host.c"), out, ["-ldl"])
    elif kind == "cgotrace":
        go_build(go, "cgotrace", out, cgo=True, ldflags=ldflags)
    elif kind == "plugin":
        go_build(go, "plugin/host", out, cgo=True, ldflags=ldflags)
        go_build(go, "plugin/part", os.path.join(directory, "part.so"), cgo=True,
                 ldflags=ldflags, flags=["-buildmode=plugin"])
    elif kind == "pgo":
        if version_key(go_version(go)) < (1, 21):
            raise BuildError(f"go{go_version(go)} has no profile-guided optimisation: it needs 1.21")
        go_build(go, target, out, ldflags=ldflags, flags=["-pgo=" + cpu_profile(go, outdir)])
    elif kind == "nosections":
        drop_sections(build(target, go, "strip", outdir), out)
    elif kind == "packed":
        cc_build(os.path.join(HERE, "packed", "packed.c"), out,
                 ["-static", "-no-pie", "-nostartfiles", "-nostdlib", "-ffreestanding",
                  "-fno-stack-protector", "-fcf-protection=none", "-s",
                  "-Wl,-Ttext-segment=0x70000000", "-Wl,--build-id=none", "-Wl,-z,norelro"])
        pack(build(target, go, "strip", outdir), out)
    elif kind == "smallheap":
        go_build(go, target, out, ldflags=ldflags, experiment="heapminimum512kib")
    elif kind == "noopt":
        go_build(go, target, out, ldflags=ldflags, flags=["-gcflags=all=-N -l"])
    elif kind in ("arm64", "386"):
        go_build(go, target, out, arch=kind, ldflags=ldflags)
    elif kind in ("plain", "strip", "pie"):
        go_build(go, target, out, ldflags=ldflags,
                 flags=["-buildmode=pie"] if kind == "pie" else [])
    else:
        raise BuildError(f"unknown variant {variant}: one of {', '.join(VARIANTS)}")
    return out


def pack(payload, program):
    """Appends payload to program, disguised: see packed/packed.c for the format."""
    with open(payload, "rb") as f:
        data = f.read()
    key = bytes((0xA5 ^ (i * 7)) & 0xFF for i in range(256))
    hidden = bytearray(len(data))
    for i in range(256):
        table = bytes(b ^ key[i] for b in range(256))
        hidden[i::256] = data[i::256].translate(table)
    with open(program, "ab") as f:
        f.write(hidden)
        f.write(struct.pack("<QQ", len(data), 0x31304B434150534F))


def build(target, go, variant="plain", outdir=None):
    """Builds a target once and returns the path of the program to run.

    go is the path of a go command (ignored for targets in C). BuildError says what failed.
    """
    outdir = os.path.abspath(outdir or default_outdir())
    if target in C_TARGETS:
        version = "c"
        if variant not in ("plain", "buildinfo"):
            raise BuildError(f"{target} has no variant {variant}: plain or buildinfo")
    elif target in GO_TARGETS:
        version = go_version(go)
        if not version:
            raise BuildError(f"{go} is not a Go toolchain that runs")
    else:
        raise BuildError(f"unknown target {target}: one of {', '.join(GO_TARGETS + C_TARGETS)}")
    if variant not in VARIANTS:
        raise BuildError(f"unknown variant {variant}: one of {', '.join(VARIANTS)}")
    directory = os.path.join(outdir, version, f"{target}-{variant}")
    program = os.path.join(directory, target)
    stamp = os.path.join(directory, "stamp")
    os.makedirs(os.path.dirname(directory), exist_ok=True)
    with open(directory + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = source_hash()
        if os.path.exists(stamp) and open(stamp).read() == wanted:
            return program
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        if target in C_TARGETS:
            cc_build(os.path.join(HERE, "fakes", "forge.c"), program,
                     ["-DFORGE_BUILDINFO"] if variant == "buildinfo" else [])
        else:
            build_go(target, go, variant, directory, outdir)
        with open(stamp, "w") as f:
            f.write(wanted)
    return program


def default_outdir():
    return os.environ.get("SONDE_TARGETS", os.path.join(HERE, "..", "..", "build", "targets"))


def main():
    parser = argparse.ArgumentParser(description="build the programs that the tests profile")
    parser.add_argument("--list", action="store_true", help="list the Go toolchains and exit")
    parser.add_argument("--go", help="version (1.22.12) or path of go; default: the mandatory one")
    parser.add_argument("--out", help="where to build (default: build/targets)")
    parser.add_argument("target", nargs="?", choices=GO_TARGETS + C_TARGETS)
    parser.add_argument("variant", nargs="?", default="plain", choices=VARIANTS)
    args = parser.parse_args()
    if args.list:
        for version, go in toolchains():
            print(version, go)
        return 0
    if not args.target:
        parser.error("which target?")
    go = args.go or mandatory()[1]
    if not os.path.exists(go):
        go = fetch(go)
        if not go:
            print(f"go {args.go} is neither on this machine nor to be fetched", file=sys.stderr)
            return 1
    try:
        print(build(args.target, go, args.variant, args.out))
    except BuildError as e:
        print(e, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
