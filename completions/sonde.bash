# bash completion for sonde                                -*- shell-script -*-

_sonde_pids()
{
	local dir
	for dir in /proc/[0-9]*; do
		[[ -r $dir/exe ]] && printf '%s\n' "${dir#/proc/}"
	done
}

# Stored services that begin with what was typed, into COMPREPLY. Their names are a process's own word:
# unlike compgen -W, this expands nothing in them.
_sonde_services()
{
	local name i dir=() prefix typed=${COMP_LINE:0:COMP_POINT}

	# Readline takes colons and equals signs for words of their own.
	for ((i = 2; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == --data-dir ]] || continue
		[[ ${COMP_WORDS[i + 1]} != = ]] || ((i++))
		dir=(--data-dir "${COMP_WORDS[i + 1]}")
	done
	typed=${typed##*[[:space:]]}
	typed=${typed#--service=}
	prefix=${typed%"${typed##*:}"}
	while IFS= read -r name; do
		[[ $name != "$typed"* ]] || COMPREPLY+=("${name#"$prefix"}")
	done < <("${COMP_WORDS[0]}" services --names "${dir[@]}" 2>/dev/null)
}

_sonde()
{
	local cur=${COMP_WORDS[COMP_CWORD]}
	local prev=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]-}
	local commands="run top ps doctor cpu heap goroutines block mutex java jfr diff show services query store version help"
	local report="-t --type -f --format -o --output -n --nodes -a --all-nodes -h --help"
	local cpu="--all -d --duration --hz --kernel --no-kernel --threads --no-lines --offcpu --min-wait --java"
	local heap="--diff --force --rate --wait --keep --core --exe --assume-layout --ignore-symbols"
	local goroutines="--state --older --diff --system --max --core --exe --assume-layout"
	local waits="--diff --wait --core --exe --assume-layout --ignore-symbols"
	local stored="--data-dir --from --to"
	local run="--listen --data-dir --interval --retention --max-disk --spool-max --cpu-hz --cpu-lines --offcpu"
	local top="-t --type -d --interval -n --lines -g --group -s --sort --service -b --batch --once"
	local types="inuse_space inuse_objects alloc_space alloc_objects"
	local words=""

	COMPREPLY=()
	if [[ $COMP_CWORD -eq 1 ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$cur")
		return
	fi

	case $command in
	cpu) types="cpu samples time waits" ;;
	top) types="cpu $types" ;;
	query) types="cpu offcpu heap alloc goroutines block mutex lock oom $types samples time waits delay contentions" ;;
	java | jfr) types="alloc_space alloc_objects delay contentions cpu samples" ;;
	show | diff) types="$types cpu samples time waits delay contentions goroutine" ;;
	esac
	# A switch in other commands.
	if [[ $command == run && $prev == --offcpu ]]; then
		mapfile -t COMPREPLY < <(compgen -W "1ms 10ms 100ms" -- "$cur")
		return
	fi

	case $prev in
	-t | --type)
		if [[ $command == block || $command == mutex ]]; then
			mapfile -t COMPREPLY < <(compgen -W "delay contentions" -- "$cur")
			return
		fi
		if [[ $command == goroutines ]]; then
			mapfile -t COMPREPLY < <(compgen -W "goroutine" -- "$cur")
			return
		fi
		mapfile -t COMPREPLY < <(compgen -W \
			"$types" -- "$cur")
		return
		;;
	--state)
		mapfile -t COMPREPLY < <(compgen -W "waiting running runnable syscall preempted" -- "$cur")
		return
		;;
	-f | --format)
		if [[ $command == goroutines ]]; then
			mapfile -t COMPREPLY < <(compgen -W "top tree full collapsed pprof json" -- "$cur")
			return
		fi
		if [[ $command == jfr ]]; then
			mapfile -t COMPREPLY < <(compgen -W "summary top tree collapsed pprof json" -- "$cur")
			return
		fi
		mapfile -t COMPREPLY < <(compgen -W "top tree collapsed pprof json" -- "$cur")
		return
		;;
	-o | --output | --core | --exe | --data-dir | --async-profiler)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--go-heap)
		mapfile -t COMPREPLY < <(compgen -W "enabled disabled force" -- "$cur")
		return
		;;
	--from)
		mapfile -t COMPREPLY < <(compgen -W "-1h -6h -1d -7d" -- "$cur")
		return
		;;
	--baseline)
		mapfile -t COMPREPLY < <(compgen -W "previous" -- "$cur")
		return
		;;
	-g | --group)
		mapfile -t COMPREPLY < <(compgen -W "function service process" -- "$cur")
		return
		;;
	-s | --sort)
		mapfile -t COMPREPLY < <(compgen -W "flat cum" -- "$cur")
		return
		;;
	-d | --duration)
		mapfile -t COMPREPLY < <(compgen -W "1s 2s 5s 10s" -- "$cur")
		return
		;;
	--min-wait)
		mapfile -t COMPREPLY < <(compgen -W "100us 1ms 10ms" -- "$cur")
		return
		;;
	--diff | --older | --wait | --interval | --goroutine-interval | --retention)
		mapfile -t COMPREPLY < <(compgen -W "10s 30s 1m 5m" -- "$cur")
		return
		;;
	--service)
		_sonde_services
		return
		;;
	-n | --lines | -c | --count)
		return
		;;
	--hz | --cpu-hz | --oom-watch | --nodes | --max | --rate | --force-block | --force-mutex)
		return
		;;
	--assume-layout | --to | --label | --listen | --max-disk | --spool-max)
		return
		;;
	esac

	case $command in
	run) words="$run --go-heap --goroutine-interval --oom-watch --java --async-profiler --keep-rate -v --verbose -h --help" ;;
	top) words="$top -c --count --json -h --help" ;;
	ps) words="-a --all --json -l --long -w --wide --core --exe -h --help" ;;
	doctor) words="--json --data-dir -h --help" ;;
	cpu) words="$report $cpu" ;;
	heap) words="$report $heap" ;;
	goroutines) words="$report $goroutines --ignore-symbols" ;;
	block) words="$report $waits --force-block" ;;
	mutex) words="$report $waits --force-mutex" ;;
	java) words="$report -d --duration --data-dir --async-profiler --flight-recorder" ;;
	diff | show | jfr) words="$report" ;;
	services) words="-a --all -n --lines --names $stored --json -h --help" ;;
	query) words="$report $stored --baseline --label" ;;
	store) words="--data-dir --json -h --help" ;;
	version) words="-h --help" ;;
	help) words="$commands" ;;
	esac

	if [[ $cur == -* || $command == help ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	elif [[ $command == block || $command == mutex || $command == ps ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_sonde_pids)" -- "$cur")
	elif [[ $command == cpu || $command == heap || $command == goroutines || $command == top ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_sonde_pids)" -- "$cur")
	elif [[ $command == java && $COMP_CWORD -eq 2 ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_sonde_pids)" -- "$cur")
	elif [[ ($command == jfr || $command == java) && $COMP_CWORD -gt 2 && $prev != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "alloc lock cpu" -- "$cur")
	elif [[ $command == query ]]; then
		_sonde_services
	elif [[ $command == store ]]; then
		mapfile -t COMPREPLY < <(compgen -W "check repair" -- "$cur")
	elif [[ $command == diff || $command == show || $command == jfr ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}

complete -o filenames -F _sonde sonde
