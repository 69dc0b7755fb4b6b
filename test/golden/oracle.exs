# Elixir's own parser as the judge of cluster files.
#
#   elixir oracle.exs DIR
#
# reads each DIR/*.exs and prints one line a file: "accepts NAME STRINGS" or "rejects NAME", where
# STRINGS are the file's string literals in order, in hexadecimal and separated by commas. What is
# accepted is also formatted as `mix format` would: to DIR/NAME.plain with our verbs as
# locals_without_parens, and to DIR/NAME.parens without.

[dir] = System.argv()

verbs =
  ~w(use deploy node model job replicate dataset gpu labels version requires file run shell env code
     setup data prefer fallback checkpoint_every priority retries timeout keep copies exclusive
     rollback_when from to filter every max_rate)a

locals = for verb <- verbs, do: {verb, :*}

strings = fn quoted ->
  {_, found} =
    Macro.prewalk(quoted, [], fn
      text, found when is_binary(text) -> {text, [text | found]}
      node, found -> {node, found}
    end)

  found
  |> Enum.reverse()
  |> Enum.map(&Base.encode16(String.replace(&1, "\r\n", "\n"), case: :lower))
  |> Enum.join(",")
end

for path <- Enum.sort(Path.wildcard(Path.join(dir, "*.exs"))) do
  name = Path.basename(path, ".exs")
  text = path |> File.read!() |> String.replace_prefix("\uFEFF", "")

  parsed =
    try do
      Code.string_to_quoted(text)
    rescue
      error -> {:error, error}
    end

  case parsed do
    {:ok, quoted} ->
      plain = Code.format_string!(text, locals_without_parens: locals)
      File.write!(Path.join(dir, name <> ".plain"), [plain, "\n"])
      File.write!(Path.join(dir, name <> ".parens"), [Code.format_string!(text), "\n"])
      IO.puts("accepts #{name} #{strings.(quoted)}")

    {:error, _} ->
      IO.puts("rejects #{name}")
  end
end
