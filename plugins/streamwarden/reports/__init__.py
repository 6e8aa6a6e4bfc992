"""The scheduled reports, and the plots that they share with pages and tickets."""
