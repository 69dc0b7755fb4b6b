#include "cli/completion.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.hpp"

namespace zed::cli {
namespace {

struct OptionValue {
  std::string_view option;
  std::string_view kind;
};

/// What is to be completed after these options: a KIND of complete-names, or "files".
constexpr std::array option_values{
    OptionValue{"--on", "nodes"},     OptionValue{"--node", "nodes"},
    OptionValue{"--to", "nodes"},     OptionValue{"--code-on", "nodes"},
    OptionValue{"--model", "models"}, OptionValue{"--data", "datasets"},
    OptionValue{"--socket", "files"}, OptionValue{"--dir", "files"},
    OptionValue{"--code", "files"},
};

/// The same of an option's value; "" for one that cannot be known.
std::string kind_of_value(std::string_view option) {
  const auto* const found =
      std::find_if(option_values.begin(), option_values.end(),
                   [&](const OptionValue& value) { return value.option == option; });
  return found == option_values.end() ? "" : std::string(found->kind);
}

/// The same of a positional.
std::string kind_of(const std::string& word) {
  if (word == "JOB" || word == "JOB|DATASET") return "jobs";
  if (word.find("@CHECKPOINT") != std::string::npos) return "checkpoints";
  if (word == "DATASET") return "datasets";
  if (word == "MODEL" || word == "MODEL@VERSION") return "models";
  if (word == "NODE") return "nodes";
  if (word == "FILE" || word == "PROFILE.json") return "files";
  return "";
}

/// "check|model add) options=… kind=…" lines of the shells' case statement.
std::string cases(const std::vector<CommandShape>& shapes) {
  std::string text;
  for (const CommandShape& shape : shapes) {
    std::string kind;
    std::string words;
    for (const std::string& positional : shape.positionals) {
      if (positional == "SHELL") words = "bash zsh fish";
      if (kind.empty()) kind = kind_of(positional);
    }
    for (const CommandShape& inner : shapes)
      if (inner.path.substr(0, shape.path.size() + 1) == shape.path + " ")
        words += (words.empty() ? "" : " ") + inner.path.substr(shape.path.size() + 1);
    text += "    '" + shape.path + "') options='" + join(shape.options, " ") + "' kind='" + kind +
            "' fixed='" + words + "' ;;\n";
  }
  return text;
}

/// Those of both shells for the value of an option.
std::string value_cases() {
  std::string text;
  for (const OptionValue& value : option_values)
    text +=
        "    " + std::string(value.option) + ") kind=" + std::string(value.kind) + " fixed= ;;\n";
  return text;
}

std::string top_level(const std::vector<CommandShape>& shapes) {
  std::vector<std::string> words;
  for (const CommandShape& shape : shapes)
    if (shape.path.find(' ') == std::string::npos) words.push_back(shape.path);
  return join(words, " ");
}

/// Both shells share this: it finds the command in the words so far and sets options, kind, words.
std::string shared_function(const std::vector<CommandShape>& shapes) {
  return "_zedctl_shape() {\n"
         "  local path=\"$1\"\n"
         "  [ \"$1\" = model ] || [ \"$1\" = dev ] && [ -n \"$2\" ] && path=\"$1 $2\"\n"
         "  options= kind= fixed=\n"
         "  case \"$path\" in\n" +
         cases(shapes) +
         "  esac\n"
         "}\n"
         "_zedctl_names() {\n"
         "  case \"$1\" in\n"
         "    jobs|nodes|models|datasets|checkpoints) zedctl complete-names \"$1\" 2>/dev/null ;;\n"
         "  esac\n"
         "}\n";
}

std::string bash_script(const std::vector<CommandShape>& shapes) {
  return "# zedctl completion for bash: source <(zedctl completion bash)\n" +
         shared_function(shapes) +
         "_zedctl() {\n"
         "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
         "  local options kind fixed\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         top_level(shapes) +
         "' -- \"$cur\"))\n"
         "    return\n"
         "  fi\n"
         "  local second=\n"
         "  [ \"$COMP_CWORD\" -gt 2 ] && second=\"${COMP_WORDS[2]}\"\n"
         "  _zedctl_shape \"${COMP_WORDS[1]}\" \"$second\"\n"
         "  case \"$previous\" in\n" +
         value_cases() +
         "  esac\n"
         "  if [ \"${cur#-}\" != \"$cur\" ]; then\n"
         "    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
         "  elif [ \"$kind\" = files ]; then\n"
         "    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -W \"$fixed $(_zedctl_names \"$kind\")\" -- \"$cur\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _zedctl zedctl\n";
}

std::string zsh_script(const std::vector<CommandShape>& shapes) {
  return "#compdef zedctl\n"
         "# zedctl completion for zsh: source <(zedctl completion zsh)\n" +
         shared_function(shapes) +
         "_zedctl() {\n"
         "  local cur=\"${words[CURRENT]}\" previous=\"${words[CURRENT-1]}\"\n"
         "  local first=\"${words[2]}\" second=\"${words[3]}\"\n"
         "  if (( CURRENT == 2 )); then\n"
         "    compadd -- " +
         top_level(shapes) +
         "\n"
         "    return\n"
         "  fi\n"
         "  (( CURRENT == 3 )) && second=\n"
         "  local options kind fixed\n"
         "  _zedctl_shape \"$first\" \"$second\"\n"
         "  case \"$previous\" in\n" +
         value_cases() +
         "  esac\n"
         "  if [[ \"$cur\" == -* ]]; then\n"
         "    compadd -- ${=options}\n"
         "  elif [[ \"$kind\" == files ]]; then\n"
         "    _files\n"
         "  else\n"
         "    compadd -- ${=fixed} $(_zedctl_names \"$kind\")\n"
         "  fi\n"
         "}\n"
         "compdef _zedctl zedctl\n";
}

std::string fish_quoted(std::string_view text) {
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

/// What to offer of a kind: " -F" for files, else the names that there are now.
std::string fish_values(const std::string& kind) {
  return kind == "files" ? " -F" : " -f -a '(zedctl complete-names " + kind + " 2>/dev/null)'";
}

std::string fish_option(const std::string& where, const std::string& option) {
  const std::string kind = kind_of_value(option);
  return "complete -c zedctl -n " + where +
         (option.substr(0, 2) == "--" ? " -l " + option.substr(2) : " -s " + option.substr(1)) +
         (kind.empty() ? "" : " -r" + fish_values(kind)) + "\n";
}

std::string fish_line(const CommandShape& shape) {
  const std::size_t space = shape.path.find(' ');
  const std::string leaf = space == std::string::npos ? shape.path : shape.path.substr(space + 1);
  const std::string parent = space == std::string::npos ? "" : shape.path.substr(0, space);
  const std::string where =
      parent.empty() ? "__fish_use_subcommand" : "__fish_seen_subcommand_from " + parent;
  std::string text = "complete -c zedctl -f -n " + fish_quoted(where) + " -a " + leaf + " -d " +
                     fish_quoted(shape.help) + "\n";
  const std::string here = fish_quoted("__fish_seen_subcommand_from " + leaf);
  for (const std::string& option : shape.options)
    text += fish_option(here, option);
  for (const std::string& positional : shape.positionals) {
    const std::string kind = kind_of(positional);
    if (!kind.empty()) text += "complete -c zedctl -n " + here + fish_values(kind) + "\n";
    if (positional == "SHELL") text += "complete -c zedctl -f -n " + here + " -a 'bash zsh fish'\n";
  }
  return text;
}

std::string fish_script(const std::vector<CommandShape>& shapes) {
  std::string text = "# zedctl completion for fish: zedctl completion fish | source\n";
  for (const CommandShape& shape : shapes)
    text += fish_line(shape);
  return text;
}

}  // namespace

Result<std::string> completion_script(const std::string& shell,
                                      const std::vector<CommandShape>& shapes) {
  if (shell == "bash") return bash_script(shapes);
  if (shell == "zsh") return zsh_script(shapes);
  if (shell == "fish") return fish_script(shapes);
  return fail(ErrorCode::invalid, "there is no completion for \"" + shell + "\"",
              "bash, zsh or fish");
}

}  // namespace zed::cli
