"""Reading what a spider finds: links of pages, sitemaps, feeds, and what they say to robots (seed 002)."""
