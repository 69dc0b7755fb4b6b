deploy :fleet do
  job :a do
  end

  job :b do
    run ["true"]
  after
    # moved here
    :a
    priority 3
  end

  job :c do
  after
    [:a, :b]
  end
end
