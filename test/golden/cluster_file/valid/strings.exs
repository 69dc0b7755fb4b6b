deploy :fleet do
  job :a do
    env TAB: "\t", QUOTE: "say \"hi\"", SLASH: "\\", ODD: "\q", BRACE: "\#{x}", UNICODE: "\u00e9\u{1F600}\x41", HASH: "# no comment", LINES: "one
two", JOINED: "one \
two", EMPTY: ""
    run "python3 'train it.py' --name \"a b\" c\\ d ''"
  end
end
