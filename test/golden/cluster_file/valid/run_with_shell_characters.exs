deploy :fleet do
  job :a do
    run "python3 train.py | tee log"
  end
  job :b do
    run "echo '$HOME' > out"
  end
  job :c do
    run "grep 'a|b' \"c;d\""
  end
end
