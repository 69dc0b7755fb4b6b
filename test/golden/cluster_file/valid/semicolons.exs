deploy :fleet do node :a; node :b ;
  node :c do gpu "A"; dataset "models"; end; job :d
end;
