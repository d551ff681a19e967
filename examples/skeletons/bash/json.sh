# As much JSON as bash needs here. For objects within objects, or characters written as two \u, install jq.

# json_member NAME JSON: the first member NAME that is a string; status 1 when there is none.
json_member() {
    local pattern="\"$1\" *: *\"(([^\"\\]|\\\\.)*)\"" text
    [[ $2 =~ $pattern ]] || return 1
    text=${BASH_REMATCH[1]//\\\\/$'\1'} # an escaped backslash must not be read together with what follows
    text=${text//\\\"/\"}
    printf -v text '%b' "${text//\\\//\/}"
    printf '%s' "${text//$'\1'/\\}"
}

# json_string TEXT: the text as a JSON string.
json_string() {
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"%s"' "${text//[[:cntrl:]]/ }"
}
