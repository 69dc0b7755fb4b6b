deploy :fleet do
  node :a
  model :small do
    dataset "library/small"
  end
  job :train do
    dataset "runs/train-001"
  end
  replicate :small do
    from :a
    to :b
    max_rate "1.5 GiB/s"
  end
  replicate :train do
    from :a
    to :b
  end
  replicate :library do
    from :a
    to [:c, :b]
  end
  replicate :elsewhere do
    from :a
    to :b
  end
end
