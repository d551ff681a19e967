# Completion of hearth for bash: source <(hearth completion bash)
# Every candidate comes from `hearth complete`. Names of apps come from outside: no word is evaluated, each is quoted before it is inserted.

# The word without its quoting; nothing in it is expanded.
_hearth_plain() {
    local rest=$1 quote='' char
    plain=''
    while [[ -n $rest ]]; do
        char=${rest:0:1} rest=${rest:1}
        case $quote$char in
            "''" | '""') quote='' ;;
            "'" | '"') quote=$char ;;
            \\) plain+=${rest:0:1} rest=${rest:1} ;;
            \"\\) case ${rest:0:1} in [\\\"\$\`]) plain+=${rest:0:1} rest=${rest:1} ;; *) plain+=\\ ;; esac ;;
            *) plain+=$char ;;
        esac
    done
}

# The candidate in the form for the quote that the person has opened, if any. History expansion reaches into double quotes.
_hearth_quoted() {
    local char i
    quoted=''
    case $2 in
        \"*)
            for ((i = 0; i < ${#1}; i++)); do
                char=${1:i:1}
                case $char in
                    [\"\\\$\`]) quoted+=\\$char ;;
                    !) quoted+="\"'!'\"" ;;
                    *) quoted+=$char ;;
                esac
            done
            [[ $1 != *\" ]] || quoted+=\" # readline takes a quote at the end for the closing one
            ;;
        \'*)
            quoted=${1//\'/\'\\\'\'}
            [[ $1 != *\' ]] || quoted+=\'
            ;;
        *) printf -v quoted %q "$1" ;;
    esac
}

_hearth() {
    local line=${COMP_LINE:0:COMP_POINT} words=('') asked=() piece before word plain quoted i
    # Bash splits words at : and = too; what stands together in the line is one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        [[ $line != [[:blank:]]* ]] || words+=('')
        line=${line#"${line%%[![:blank:]]*}"}
        piece=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || piece=$line
        words[-1]+=$piece
        line=${line#"$piece"}
    done
    case $piece in : | =) piece='' ;; esac
    before=${words[-1]%"$piece"}
    for word in "${words[@]:1}"; do
        _hearth_plain "$word"
        asked+=("$plain")
    done
    _hearth_plain "$before"
    COMPREPLY=()
    while IFS= read -r line; do
        word=${line%%$'\t'*}
        if [[ -z $word ]]; then
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -f -- "${asked[-1]}")
            return
        fi
        _hearth_quoted "${word#"$plain"}" "$piece"
        COMPREPLY+=("$quoted")
    done < <(hearth complete -- "${asked[@]}" 2>/dev/null)
}
complete -F _hearth hearth
