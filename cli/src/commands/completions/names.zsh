_toolward_names() {
    local -a names
    names=("${(@f)$(command toolward internal-names "$1" 2>/dev/null </dev/null)}")
    compadd -a names
}
