// family: words of the judge
// expect: program-failed
// says: gave up (abort)

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    // In place of what tells the judge of a panic, and in the middle of one.
    struct Last;
    impl Drop for Last {
        fn drop(&mut self) {
            panic!("step01 passed, 5 of 5");
        }
    }
    std::panic::set_hook(Box::new(|_| println!("{}", r#"{"scores": {"step01": 5.0}}"#)));
    let _last = Last;
    panic!("]]></failure><script>alert(1)</script>;=cmd|'/c calc'!A0")
}
