deploy :fleet, pool: "tank" do
  job :a do
    run "python3 'train.py"
  end
  job :b do
    run "say \"hi"
  end
  job :c do
    run "   "
  end
  job :d do
    run ["python3", 3, :x]
  end
  job :e do
    run ["", "x"]
  end
  job :f do
    run "a", "b"
  end
  job :g do
    run "oops \\"
  end
end
