# The work itself, without Hearth: a text in, an object out. Replace it by yours.

# count TEXT: the number of its words and the longest of them, as JSON.
count() {
    local words word longest=''
    read -r -d '' -a words <<<"$1" || true
    for word in "${words[@]}"; do
        [ "${#word}" -le "${#longest}" ] || longest=$word
    done
    printf '{"words":%d,"longest":%s}\n' "${#words[@]}" "$(json_string "$longest")"
}
