
_toolward_names() {
    local cur="$2" word line path="" kind="" value="" place=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$word" in
            =) value="${value:-=}" ;;
            SWITCHES) value="" ;;
            --store-dir=* | --config=*) place+=("$word") value="" ;;
            -*=*) value="" ;;
            -*) value="$word" ;;
            *)
                case "$value" in
                    "") path+=" $word" ;;
                    --store-dir | --config) place+=("$value" "${word/#\~\//$HOME/}") ;;
                esac
                value=""
                ;;
        esac
    done
    case "$path" in
CASES
    esac
    if [[ -z "$kind" || -n "$value" || "$cur" == [-=]* ]]; then
        _toolward "$@"
        return
    fi
    COMPREPLY=()
    while IFS= read -r line; do
        [[ "$line" == "$cur"* ]] && COMPREPLY+=("$line")
    done < <(command toolward internal-names "$kind" "${place[@]}" 2>/dev/null </dev/null)
}
complete -F _toolward_names -o bashdefault -o default toolward
