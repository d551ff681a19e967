#compdef hearth
# Completion of hearth for zsh: source <(hearth completion zsh)
# Every candidate comes from `hearth complete`; compadd quotes it, nothing is evaluated.
_hearth() {
    local line word
    local -a names shown
    while IFS= read -r line; do
        word=${line%%$'\t'*}
        if [[ -z $word ]]; then
            _files
            return
        fi
        names+=("$word")
        shown+=("$word${${line#*$'\t'}:+ -- ${line#*$'\t'}}")
    done < <(hearth complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
    (( $#names )) && compadd -l -d shown -a names
}
if [[ $funcstack[1] == _hearth ]]; then
    _hearth "$@"
else
    compdef _hearth hearth
fi
