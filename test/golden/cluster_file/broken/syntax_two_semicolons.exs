deploy :fleet do
  node :a;; node :b
end
