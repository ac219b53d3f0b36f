/** The completion script of each shell; the candidates come from `svc complete-words`. */
export const COMPLETION_SCRIPTS = {
  bash: `# svc completion for bash
_svc() {
  local word=\${COMP_WORDS[COMP_CWORD]} line
  # A colon ends a word for bash; what stands before it is part of what we complete.
  local -a words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("$line")
  done < <(svc complete-words -- "\${words[@]}" 2>/dev/null)
  if [ \${#COMPREPLY[@]} -eq 0 ]; then
    compopt -o default 2>/dev/null
    COMPREPLY=()
  elif [[ \${COMPREPLY[0]} == *: ]]; then
    compopt -o nospace 2>/dev/null
  fi
}
complete -F _svc svc
`,
  zsh: `#compdef svc
# svc completion for zsh
_svc() {
  local -a candidates
  candidates=("\${(@f)$(svc complete-words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ \${#candidates} -eq 0 || -z \${candidates[1]} ]]; then
    _files
  elif [[ \${candidates[1]} == *: ]]; then
    compadd -S '' -a candidates
  else
    compadd -a candidates
  fi
}
if [ "\${funcstack[1]}" = "_svc" ]; then
  _svc "$@"
else
  compdef _svc svc
fi
`,
  fish: `# svc completion for fish
function __svc_complete
  set -l words (commandline -opc) (commandline -ct)
  svc complete-words -- $words[2..-1] 2>/dev/null
end
complete -c svc -a '(__svc_complete)'
`,
} as const;

export type Shell = keyof typeof COMPLETION_SCRIPTS;
