//! Stamps as catalogues write them: instants to text in every shape, and text to instants.
//!
//! Written apart from the library's own reader on purpose. Knows no clock and no time zone but UTC and fixed offsets.

/// Microseconds since 1970-01-01T00:00:00Z.
pub(crate) type Micros = i64;

pub(crate) const SECOND: Micros = 1_000_000;
pub(crate) const MINUTE: Micros = 60 * SECOND;
pub(crate) const HOUR: Micros = 60 * MINUTE;
pub(crate) const DAY: Micros = 24 * HOUR;

/// How a catalogue writes the stamps of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StampShape {
    /// `2025-03-01T10:00:00Z`
    Seconds,
    /// `2025-03-01`
    Day,
    /// `2025-03-01T10:00:00.123Z`, with so many digits (1 to 6), never trimmed.
    Fraction(u8),
    /// `2025-03-01T10:00:00`, meant as UTC.
    NoZone,
    /// `2025-03-01T12:00:00+02:00`, with so many minutes of offset.
    Offset(i16),
    /// All of the above in turn.
    Mixed,
    /// `Sat Mar 01 10:00:00 UTC 2025`, as deegree 3 shows it in csw:Record (DCRecord.java).
    JavaText,
    /// Nothing: the record is undated.
    Absent,
}

impl StampShape {
    /// The text for `at`; `turn` chooses among the shapes of [`StampShape::Mixed`].
    pub(crate) fn write(self, at: Micros, turn: u64) -> Option<String> {
        let (date, time, fraction) = parts(at);
        Some(match self {
            StampShape::Absent => return None,
            StampShape::Seconds => format!("{date}T{time}Z"),
            StampShape::Day => date,
            StampShape::Fraction(digits) => {
                let digits = usize::from(digits.clamp(1, 6));
                format!("{date}T{time}.{}Z", &format!("{fraction:06}")[..digits])
            }
            StampShape::NoZone => format!("{date}T{time}"),
            StampShape::Offset(minutes) => {
                let (date, time, _) = parts(at + Micros::from(minutes) * MINUTE);
                let sign = if minutes < 0 { '-' } else { '+' };
                let size = minutes.unsigned_abs();
                format!("{date}T{time}{sign}{:02}:{:02}", size / 60, size % 60)
            }
            StampShape::Mixed => {
                const TURNS: [StampShape; 5] =
                    [StampShape::Seconds, StampShape::Day, StampShape::Fraction(3), StampShape::NoZone, StampShape::Offset(120)];
                return TURNS[(turn % 5) as usize].write(at, turn);
            }
            StampShape::JavaText => {
                let days = at.div_euclid(DAY);
                let (year, month, day) = civil(days);
                format!("{} {} {day:02} {time} UTC {year}", weekday(days), month_name(month))
            }
        })
    }
}

/// `2025-03-01T10:00:00Z`.
pub(crate) fn seconds_z(at: Micros) -> String {
    StampShape::Seconds.write(at, 0).expect("a shape that writes")
}

/// The HTTP form (RFC 9110, 5.6.7): `Sat, 01 Mar 2025 10:00:00 GMT`.
pub(crate) fn http_date(at: Micros) -> String {
    let days = at.div_euclid(DAY);
    let (year, month, day) = civil(days);
    let (_, time, _) = parts(at);
    format!("{}, {day:02} {} {year:04} {time} GMT", weekday(days), month_name(month))
}

/// The instant at midnight UTC of a day.
pub(crate) fn day(year: i64, month: i64, day: i64) -> Micros {
    days_from_civil(year, month, day) * DAY
}

/// The first instant that `text` names, a missing zone taken for UTC. None for what cannot be read, so for `JavaText` too.
pub(crate) fn read(text: &str) -> Option<Micros> {
    let (date, rest) = match text.find(['T', 't', ' ']) {
        Some(at) => (text.get(..at)?, Some(text.get(at + 1..)?)),
        None => (text, None),
    };
    let midnight = read_date(date)?;
    match rest {
        None => Some(midnight),
        Some(rest) => Some(midnight + read_time(rest)?),
    }
}

/// Whether a literal names more than a day.
pub(crate) fn has_time(text: &str) -> bool {
    text.contains(['T', 't', ':'])
}

/// Midnight of the first day of the month of `at`.
pub(crate) fn month_start(at: Micros) -> Micros {
    let (year, month, _) = civil(at.div_euclid(DAY));
    day(year, month, 1)
}

fn read_date(text: &str) -> Option<Micros> {
    let (year, month, day_of_month) = match text.len() {
        4 => (number(text)?, 1, 1),
        7 if text.as_bytes()[4] == b'-' => (number(text.get(..4)?)?, number(text.get(5..)?)?, 1),
        8 => (number(text.get(..4)?)?, number(text.get(4..6)?)?, number(text.get(6..)?)?),
        10 if text.as_bytes()[4] == b'-' && text.as_bytes()[7] == b'-' => {
            (number(text.get(..4)?)?, number(text.get(5..7)?)?, number(text.get(8..)?)?)
        }
        _ => return None,
    };
    let at = day(year, month, day_of_month);
    // 2025-02-30 and month 13 come back as another day.
    (civil(at.div_euclid(DAY)) == (year, month, day_of_month)).then_some(at)
}

fn read_time(text: &str) -> Option<Micros> {
    let (clock, offset) = match text.find(['Z', 'z', '+', '-']) {
        Some(at) => (text.get(..at)?, read_offset(text.get(at..)?)?),
        None => (text, 0),
    };
    let (whole, fraction) = match clock.split_once('.') {
        Some((whole, fraction)) => (whole, read_fraction(fraction)?),
        None => (clock, 0),
    };
    let mut fields = whole.split(':');
    let hour = number(fields.next()?)?;
    let minute = number(fields.next()?)?;
    let second = fields.next().map_or(Some(0), number)?;
    if fields.next().is_some() || hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    Some(hour * HOUR + minute * MINUTE + second * SECOND + fraction - offset)
}

fn read_offset(text: &str) -> Option<Micros> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits: String = text.get(1..)?.chars().filter(|character| *character != ':').collect();
    match digits.len() {
        2 => Some(sign * number(&digits)? * HOUR),
        4 => Some(sign * (number(&digits[..2])? * HOUR + number(&digits[2..])? * MINUTE)),
        _ => None,
    }
}

fn read_fraction(text: &str) -> Option<Micros> {
    let digits: String = text.chars().chain("000000".chars()).take(6).collect();
    number(&digits)
}

fn number(text: &str) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn parts(at: Micros) -> (String, String, Micros) {
    let (year, month, day) = civil(at.div_euclid(DAY));
    let within = at.rem_euclid(DAY);
    let time = format!("{:02}:{:02}:{:02}", within / HOUR, within % HOUR / MINUTE, within % MINUTE / SECOND);
    (format!("{year:04}-{month:02}-{day:02}"), time, within % SECOND)
}

// Both ways between days since 1970 and the proleptic Gregorian calendar, counted in eras of 400 years that begin in March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let march_month = (month + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn weekday(days: i64) -> &'static str {
    ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][days.rem_euclid(7) as usize]
}

fn month_name(month: i64) -> &'static str {
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][(month - 1) as usize]
}
