# Completion of hearth for fish: hearth completion fish | source
# Every candidate comes from `hearth complete`; fish quotes it, nothing is evaluated.
function __hearth_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct | string unescape)
    for line in (hearth complete -- $words[2..-1] "$current" 2>/dev/null)
        if string match -q -- \t'*' $line
            __fish_complete_path "$current"
        else
            printf '%s\n' $line
        end
    end
end
complete -c hearth -f -k -a '(__hearth_complete)'
