deploy :fleet do
  # 日本語 — ünïcode 🚀
  node :a do
    labels ["schnell ⚡", "日本"]
  end
end
