deploy :fleet do
  # Überschrift
  node :server


  job :a do
    shell """
    one
      two
    """
  end
end
