"""Line search: RE2 over the stored texts of whole documents."""
