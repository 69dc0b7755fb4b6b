deploy :fleet do
  job :a do
    env X: "日本語", ZED_X: "1"
  end
end
