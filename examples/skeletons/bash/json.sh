# As much JSON as bash needs here. For objects within objects, or characters written as two \u, install jq.

# json_member NAME JSON: the first member NAME that is a string; status 1 when there is none.
json_member() {
    local pattern="\"$1\" *: *\"(([^\"\\]|\\\\.)*)\"" text
    [[ $2 =~ $pattern ]] || return 1
    # An escaped backslash is set aside, so that it is not read together with what follows.
    text=$(sed 's/\\\\/\x01/g; s/\\"/"/g; s/\\\//\//g' <<<"${BASH_REMATCH[1]}")
    printf '%b' "$text" | tr '\1' '\\'
}

# json_string TEXT: the text as a JSON string.
json_string() {
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"%s"' "${text//[[:cntrl:]]/ }"
}
